"""One thread of linear algebra, since what is released must be the same bytes wherever it is made.

More threads add numbers in another order. The last digit of a sum then differs, and with it, now
and then, the step of the grid that a fix is rounded to.
"""

import os
from contextlib import AbstractContextManager
from typing import Any

# Read by the libraries when they are loaded.
_VARIABLES = ("OPENBLAS", "OMP", "MKL", "BLIS", "VECLIB_MAXIMUM")


def keep_one_thread() -> None:
    """Have linear algebra use one thread from now on, in this process and those that it starts."""
    for name in _VARIABLES:
        os.environ[f"{name}{'' if '_' in name else '_NUM'}_THREADS"] = "1"
    one_thread()


def one_thread() -> AbstractContextManager[Any]:
    """Have linear algebra that is loaded use one thread, until what is returned is left."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits
