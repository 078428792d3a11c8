"""Strokes and parts of handwritten digits, with the scikit-learn estimator.

python examples/digits.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from deepmf import DeepMF, LayerCentric

X = load_digits().data

model = DeepMF([16, 8], constraint_W="simplex", max_iter=200, tol=1e-3).fit(X)
print(model.factorization_)
print("codes in layer 2:", model.transform(X[:3]).round(1).tolist())

strokes = model.links(2)[:, 0]
shares = ", ".join(f"{s:.0%} part {k + 1}" for k, s in enumerate(strokes))
print("the first stroke is made of", shares)

search = GridSearchCV(
    DeepMF([16, 8], constraint_W="simplex", model=LayerCentric(), max_iter=50, tol=1e-3),
    {"model__lam": [0.1, 1.0, 10.0]},
    cv=2,
).fit(X)
print("best weight of the deeper layer on held-out digits:", search.best_params_)
