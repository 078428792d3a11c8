"""Groups of handwritten digits, with the scikit-learn estimator.

python examples/digits.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from deepmf import DeepMF

X = load_digits().data

model = DeepMF([16, 8], recipe="images", random_state=0).fit(X)
print(model.factorization_)
print("codes in layer 2:", model.transform(X[:3]).round(1).tolist())

parts = model.links(2)[:, 0]
shares = " + ".join(f"{s:.0%} component {k + 1} of layer 2" for k, s in enumerate(parts) if s > 0)
print("component 1 of layer 1 is made of", shares)

search = GridSearchCV(
    DeepMF([16, 8], recipe="images", model="data-centric", random_state=0),
    {"model__mu": [0.1, 0.3, 1.0]},
    cv=2,
).fit(X)
print("best weight of the deeper layer on held-out digits:", search.best_params_)
