"""
Loud and quiet notes
====================

A bass is 40 dB quieter than the melody. Squared errors see only the melody; the Itakura-Saito
divergence compares ratios of powers, so that quiet notes count as much as loud ones. Layer 1 has
two spectra for each note and two for noise, layer 2 one each.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import spectrogram
from sklearn.metrics import roc_auc_score

from deepmf import factorize

NOTES = {"G4": 392.0, "E4": 329.6, "D4": 293.7, "C3": 130.8, "G2": 98.0}
RATE, BEAT = 4000, 0.4
rng = np.random.default_rng(0)


def tone(pitch, beats, volume):
    """Five partials, the higher the quieter and the sooner gone."""
    t = np.arange(int(beats * BEAT * RATE)) / RATE
    edge = np.clip(np.minimum(t, t[-1] - t) / 0.03, 0, 1)
    partials = [np.exp(-t * (1 + h)) / h * np.sin(2 * np.pi * h * pitch * t) for h in range(1, 6)]
    return volume * rng.uniform(0.5, 1.5) * edge * sum(partials)


# %%
# The sound: beats at which each note starts, and the power spectrogram of the sum with some noise.

starts = {
    "G4": [3, 9, 13, 21, 27, 30],
    "E4": [0, 4, 6, 12, 16, 20, 24, 28],
    "D4": [2, 5, 8, 11, 14, 18, 22, 26, 29],
    "C3": [0, 8, 16, 24],
    "G2": [4, 12, 20, 28],
}
parts = {note: np.zeros(int(33 * BEAT * RATE)) for note in NOTES}
for note, beats in starts.items():
    for beat in beats:
        bass = note in ("C3", "G2")
        x = tone(NOTES[note], 3 if bass else 1, 0.01 if bass else 1.0)
        first = int(beat * BEAT * RATE)
        parts[note][first : first + len(x)] += x


def power(x):
    """The power spectrogram, frequencies x times."""
    return spectrogram(x, RATE, window="hann", nperseg=512, noverlap=256, detrend=False)


noise = 1e-3 * rng.standard_normal(int(33 * BEAT * RATE))
frequencies, times, X = power(sum(parts.values()) + noise)
sounds = [(p := power(x)[2].sum(axis=0)) > 1e-3 * p.max() for x in parts.values()]

# %%
# Both fits start from the harmonics that a note must have, and from a flat spectrum for the noise.


def harmonics(panels, rank, rng):
    """Spectra of the notes and of noise, rank / 6 of each."""
    W = [np.ones(len(frequencies)) + 0.1 * rng.random(len(frequencies)) for _ in range(rank // 6)]
    for pitch in reversed(NOTES.values()):
        for k in range(rank // 6, 0, -1):
            near = [np.exp(-0.5 * ((frequencies - h * pitch) / 8) ** 2) for h in range(1, 6)]
            W.insert(0, 1e-4 + sum(w / h ** (1.5 * k) for h, w in enumerate(near, start=1)))
    return np.array(W).T


fits = {
    loss: factorize(
        X, [12, 6], model="data-centric", beta_loss=loss, init=harmonics, random_state=0
    )
    for loss in ("itakura-saito", "frobenius")
}
for loss, f in fits.items():
    found = [roc_auc_score(s, h) for s, h in zip(sounds, f.codes(2))]
    print(loss, {note: round(score, 2) for note, score in zip(NOTES, found)})

# %%
# The scores above say how often a note's activation is higher when the note sounds than when it
# does not: 1 is always, 0.5 is chance. Gray: when the note sounds.

fig, axes = plt.subplots(5, 2, figsize=(9, 6.5), layout="constrained", width_ratios=[1, 2.2])
for k, (note, (left, right)) in enumerate(zip(NOTES, axes)):
    right.fill_between(times, -80, 3, where=sounds[k], color="0.88", step="mid", linewidth=0)
    for number, (loss, f) in enumerate(fits.items()):
        w, h = f.basis(2)[:, k], f.codes(2)[k]
        w, h = (10 * np.log10(np.maximum(v / v.max(), 1e-9)) for v in (w, h))
        left.plot(frequencies, w, color=f"C{number}", linewidth=1)
        right.plot(times, h, color=f"C{number}", linewidth=1.3, label=loss)
    left.axvline(NOTES[note], color="0.6", linestyle=":", zorder=0)
    left.set(ylim=(-80, 3), ylabel=f"{note}\ndB")
    right.set(ylim=(-80, 3), xlim=(0, times[-1]))
for ax in axes.flat:
    ax.label_outer()
axes[0, 0].set_title("spectra (dotted: pitch)", fontsize=10)
axes[0, 1].set_title("activations", fontsize=10)
axes[-1, 0].set_xlabel("Hz")
axes[-1, 1].set_xlabel("seconds")
fig.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
