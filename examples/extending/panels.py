"""A kind of data of your own: X = U V, which is never multiplied out."""

import numpy as np

from deepmf import Quadratic, factorize
from deepmf.checks import check_panels
from deepmf.data.panels import Matrix, Panels, squared_answer


class Factored(Matrix):
    """X = U V with U (m x k) and V (k x n): say, a scene after compression by principal components.

    `Matrix` is the interface of X before a fit: statistics, and the places of bad entries.
    """

    def __init__(self, U, V):
        self.U, self.V = np.asarray(U, dtype=float), np.asarray(V, dtype=float)
        self.shape, self.dtype = (len(self.U), self.V.shape[1]), self.V.dtype

    def blocks(self):
        for start in range(0, self.shape[1], 4096):
            yield start, self.U @ self.V[:, start : start + 4096]

    def panels(self, width):
        return FactoredPanels(self.U, self.V)


class FactoredPanels(Panels):
    """What a fit asks: products with X cost k (m + n) instead of m n."""

    def __init__(self, U, V):
        self.U, self.V = U, V
        self.shape, self.dtype = (len(U), V.shape[1]), V.dtype
        self.norm2 = float(np.sum((U.T @ U) * (V @ V.T)))

    # --- the fit: the bridge that every sweep crosses once -----------------------------------

    def improve(self, coding, solver, max_iter, tol):
        H = self.codes.H
        q = Quadratic.of(A=coding.A, C=self.dot(coding.G))
        q = coding.with_penalty(q, H)
        H[:] = solver.improve(q, coding.constraint, H, max_iter, tol)
        XHt, HHt = self.U @ (self.V @ H.T), H @ H.T
        return squared_answer(XHt, HHt, self.norm2, len(coding.terms), coding.penalty(H))

    def residuals2(self, bases):
        """||U V - B H||^2 = ||R [V; -H]||^2 with [U B] = Q R."""
        both = np.vstack([self.V, -self.codes.H])
        return np.array([np.sum((np.linalg.qr(np.c_[self.U, B])[1] @ both) ** 2) for B in bases])

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self):
        return np.sum(self.V * (self.U.T @ self.U @ self.V), axis=0)

    def columns(self, index):
        return self.U @ self.V[:, index]

    def dot(self, G, index=None):
        return (G.T @ self.U) @ (self.V if index is None else self.V[:, index])

    def leading(self, k, members=None):
        V = self.V if members is None else self.V[:, members]
        values, vectors = np.linalg.eigh(self.U @ (V @ V.T) @ self.U.T)
        return vectors[:, : -k - 1 : -1], np.sqrt(np.maximum(values[: -k - 1 : -1], 0))


rng = np.random.default_rng(0)
U, V = rng.random((150, 8)), rng.dirichlet([0.3] * 8, 2000).T
check_panels(Factored(U, V), U @ V)
print(factorize(Factored(U, V), ranks=[8, 4], init="snpa", tol=1e-3))
