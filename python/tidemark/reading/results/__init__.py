"""Results of analyses as frozen dataclasses: the fields are the keys of the commands' JSON."""
