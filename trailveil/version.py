"""The version of this package, and of its designs: written here and nowhere else."""

__version__ = "0.1.0"

# Raised whenever the same request, or the same kind, would get other noise: draws are never shared
# between designs, and no design is kept beyond that.
DESIGN_VERSION = 7
