"""The hierarchy of components: their names, their tree, their order in drawings."""
