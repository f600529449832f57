"""The experiments that take minutes: run once, recorded, loaded by the chapters."""
