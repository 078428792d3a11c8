"""The algebra of a model: quadratics, the state of the small side, named parameters."""
