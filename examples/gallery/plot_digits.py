"""
Strokes of digits, with scikit-learn
====================================

`DeepMF` is a scikit-learn transformer: rows are samples, it clones, pipes and searches. Here codes
of two layers feed a classifier, beside the pixels themselves.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from deepmf import DeepMF
from deepmf.plots import plot_hierarchy

X, y = load_digits(return_X_y=True)
model = DeepMF([16, 8], constraint_W="simplex", tol=1e-3).fit(X)
fig = plot_hierarchy(model.factorization_, image=(8, 8))

# %%
# How much do 16 and 8 numbers a digit keep of its 64 pixels?

scores = {}
for name, first in {
    "64 pixels": None,
    "layer 1, 16 codes": DeepMF([16, 8], constraint_W="simplex", tol=1e-3, layer=1),
    "layer 2, 8 codes": DeepMF([16, 8], constraint_W="simplex", tol=1e-3, layer=2),
}.items():
    steps = [MaxAbsScaler(), LogisticRegression(max_iter=1000)]
    pipe = make_pipeline(*([first] if first else []), *steps)
    scores[name] = cross_val_score(pipe, X, y, cv=3).mean()

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(scores), list(scores.values()), color=["0.7", "C0", "C1"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlabel="accuracy, 3-fold cross-validation", xlim=(0, 1.1))
ax.invert_yaxis()
