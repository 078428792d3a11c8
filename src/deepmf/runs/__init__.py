"""From a file to a folder of results, and back."""
