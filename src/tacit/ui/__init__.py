"""Faces: they render events and call the layers below."""
