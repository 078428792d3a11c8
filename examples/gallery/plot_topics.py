"""
Topics and fields
=================

Documents use the words of six topics, which belong to three fields. From a sparse matrix of counts,
layer 1 finds the topics and layer 2 the fields. The recipe for topics gives each topic one field.
"""

import numpy as np
from scipy import sparse

from deepmf import factorize
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.plots import plot_hierarchy, plot_words

FIELDS = {
    "game team season win player": ["goal ice puck goalie", "pitch hit inning base"],
    "study data result theory": ["orbit moon launch rocket", "patient dose trial cell"],
    "file program user system": ["image pixel color render", "key cipher attack chip"],
}
words, topics = [], []
for common, special in FIELDS.items():
    for own in special:
        topics.append(common.split() + own.split())
        words += [w for w in topics[-1] if w not in words]

# %%
# Each document mixes topics, mostly of one field; the data are word counts.

rng = np.random.default_rng(0)
beta = np.zeros((len(words), len(topics)))
for k, own in enumerate(topics):
    beta[[words.index(w) for w in own], k] = rng.uniform(0.5, 1.5, len(own))
beta /= beta.sum(axis=0)
field = rng.dirichlet([0.2] * 3, 800)
mixture = np.repeat(field, 2, axis=1) * rng.dirichlet([0.4] * 6, 800)
mixture /= mixture.sum(axis=1, keepdims=True)
counts = np.column_stack([rng.multinomial(80, p) for p in mixture @ beta.T])

X = Dataset("documents", sparse.csc_array(counts.astype(float)), Layout(features=np.array(words)))
f = factorize(X, [6, 3], recipe="topics", random_state=0)
print(f)
print(f.tree())

# %%
# The top words of each topic, then of each field.

fig = plot_words(f, 1)

# %%
fig = plot_words(f, 2)

# %%
fig = plot_hierarchy(f)
