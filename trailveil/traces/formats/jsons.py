"""JSON is told apart by what stands in it: exactly one kind must fit, and nothing is guessed."""

from collections.abc import Sequence
from typing import Final

from trailveil.errors import UnreadableInput
from trailveil.traces.formats import geojson, mfjson, owntracks, timeline
from trailveil.traces.formats.collect import MOST_POINTS
from trailveil.traces.formats.json_text import parsed
from trailveil.traces.trace import Recording

_KINDS: Final = (geojson, mfjson, timeline, owntracks)


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a JSON text, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is none of GeoJSON, Moving Features, Google Timeline and
    OwnTracks, could be several, or has no timed position.
    """
    try:
        return _read(data, where, field_names, most)
    except RecursionError:  # where a part is compared or written that was just not too deep to read
        raise UnreadableInput(
            f"JSON must not be nested deeply, got some that is: {where}; export the recording again"
        ) from None


def _read(data: bytes, where: str, field_names: Sequence[str], most: int) -> Recording:
    if owntracks.is_lines(data):
        return owntracks.read_lines(data, where, field_names, most)
    root = parsed(data, where)
    fitting = [kind for kind in _KINDS if kind.fits(root)]
    if len(fitting) != 1:
        raise UnreadableInput(
            "input must be GeoJSON, Moving Features, Google Timeline or OwnTracks, got JSON of "
            f"{'several kinds' if fitting else 'another kind'}: {where}; export the recording as "
            "GPX or GeoJSON"
        )
    recording: Recording = fitting[0].take(root, where, field_names, most)
    return recording
