"""
Digits, with scikit-learn
=========================

`DeepMF` is a scikit-learn transformer: rows are samples, and it works in pipelines and grid
searches. This example classifies digits by the codes of two layers and by their pixels.
"""

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from deepmf import DeepMF
from deepmf.plots import plot_hierarchy

X, y = load_digits(return_X_y=True)
deep = DeepMF([16, 8], recipe="images", random_state=0).fit(X)
fig = plot_hierarchy(deep.factorization_, image=(8, 8))

# %%
# Accuracy with 16 and 8 codes instead of 64 pixels. It is about the same as with two separate flat
# factorizations, but here the 8 components are related to the 16.

models = {
    "64 pixels": None,
    "16 codes, flat": NMF(16, init="nndsvda", max_iter=500),
    "16 codes, layer 1": clone(deep).set_params(layer=1),
    "8 codes, flat": NMF(8, init="nndsvda", max_iter=500),
    "8 codes, layer 2": clone(deep).set_params(layer=2),
}
scores = {}
for name, first in models.items():
    steps = [MaxAbsScaler(), LogisticRegression(max_iter=1000)]
    pipe = make_pipeline(*([first] if first else []), *steps)
    scores[name] = cross_val_score(pipe, X, y, cv=3).mean()

fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
bars = ax.barh(list(scores), list(scores.values()), color=["0.7", "0.85", "C0", "0.85", "C1"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlabel="accuracy, 3-fold cross-validation", xlim=(0, 1.1))
ax.invert_yaxis()
