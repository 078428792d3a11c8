"""The fit: from resolved settings to converged factors."""
