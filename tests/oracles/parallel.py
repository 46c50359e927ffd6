"""The parallel sum of two covariances, (A^-1 + B^-1)^-1, as a limit of regular ones in 400 digits.

Source: Anderson and Duffin (1969), Series and parallel addition of matrices, JMAA 26.
"""

from typing import Any

import mpmath
import numpy as np

from trailveil.gp.gaussian import FloatArray


def parallel_sum(first: FloatArray, second: FloatArray) -> FloatArray:
    """((A + e I)^-1 + (B + e I)^-1)^-1 (n, n) for e = 1e-150, and A, B (n, n) of any rank."""
    with mpmath.workdps(400):
        size = first.shape[0]
        little: Any = mpmath.mpf(10) ** -150 * mpmath.eye(size)
        inverses = [(mpmath.matrix(part.tolist()) + little) ** -1 for part in (first, second)]
        total = (inverses[0] + inverses[1]) ** -1
        return np.array([[float(total[i, j]) for j in range(size)] for i in range(size)])
