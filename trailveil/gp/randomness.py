"""Normal deviates for releases: a seed of 32 secret bytes, stretched by a cryptographic function.

The seed is either the operating system's randomness or a keyed function of everything that a
release depends on (see `derive`). There is no default seed and no other source.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray

SEED_BYTES = 32
_CHUNK = 1 << 20


def fresh_seed() -> bytes:
    """A seed from the operating system's cryptographic source."""
    return secrets.token_bytes(SEED_BYTES)


def derive(key: bytes, parts: Iterable[bytes]) -> bytes:
    """A seed or identifier that is a keyed function (HMAC-SHA256) of all the parts, in order.

    Each part goes in with its length, so no two lists of parts are confused.
    """
    if len(key) != SEED_BYTES:
        raise InvalidValue(f"a key must be {SEED_BYTES} bytes, got {len(key)}")
    pieces = (piece for part in parts for piece in (len(part).to_bytes(8, "big"), part))
    return hmac.digest(key, b"".join(pieces), "sha256")


def slow_digest(parts: Iterable[bytes]) -> bytes:
    """A digest of all the parts, in order, that takes some 3 ms and 1 MiB to compute (scrypt).

    Where whoever has a key could test guesses of what is digested, each guess costs that much.
    """
    whole = derive(bytes(SEED_BYTES), parts)
    return hashlib.scrypt(whole, salt=b"trailveil", n=2**10, r=8, p=1, dklen=SEED_BYTES)


def normals(seed: bytes, label: str, count: int) -> FloatArray:
    """`count` independent standard normal deviates; the same seed and label give the same ones.

    SHAKE-256 of seed, label and block gives 64 bits a deviate: a sign and 63 bits of tail
    probability, mapped by the inverse normal distribution function. Labels make separate streams.
    """
    if len(seed) != SEED_BYTES:
        raise InvalidValue(f"a seed must be {SEED_BYTES} bytes, got {len(seed)}")
    values = np.empty(count)
    for block, start in enumerate(range(0, count, _CHUNK)):
        size = min(_CHUNK, count - start)
        stream = hashlib.shake_256(derive(seed, [label.encode(), block.to_bytes(8, "big")]))
        values[start : start + size] = deviates(np.frombuffer(stream.digest(8 * size), dtype="<u8"))
    return values


def deviates(words: NDArray[np.uint64]) -> FloatArray:
    """Standard normal deviates (n,) of uniform 64-bit words (n,): to 9.1 deviations either way."""
    tail = ((words >> np.uint64(1)).astype(np.float64) + 0.5) / 2.0**64
    from scipy.special import ndtri  # heavy, and only needed for noise

    return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * ndtri(tail))
