"""Versions of one recording, planned beside those of it that are published."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trailveil.errors import Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import identified, known_public
from trailveil.ledger.counting import earlier, span
from trailveil.ledger.identity import ME, content_of, prints_of
from trailveil.ledger.versions import Member, as_version, chain_of, place_in
from trailveil.release.places import Visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.versions import Version, in_order
from trailveil.traces.projection import placed
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from trailveil.designer.table import Cache


def protect_versions(
    ledger: Ledger,
    trace: Trace,
    chosen: Chosen,
    versions: Sequence[Version],
    *,
    places: Sequence[Visited] = (),
    subject: str = ME,
    key: bytes | None = None,
    cache: "Cache | None" = None,
    alone: bool = False,
) -> list[Plan]:
    """The plans of versions, the finest first: all together tell what the finest tells.

    Those of the recording that are published are versions beside them. alone: these do not count,
    as where nobody has them, or are counted besides. Raises as `trailveil.release.protect.protect`
    does, and Refused for what does not nest.
    """
    chain = [] if alone else _published(ledger, trace, subject, key)
    public = known_public(ledger, trace, subject)
    plans = []
    for version in in_order(versions):
        asked = requested(trace, chosen, version.request, places, public)
        plan = replace(
            protect(trace, asked, places=places, cache=cache),
            version=version.name,
            subject=subject,
            key=key,
        )
        request = identified(ledger, trace, plan.identity, key).request
        plan = as_version(plan, request, chain)
        request = identified(ledger, trace, plan.identity, key).request
        if request not in {member.request for member in chain}:
            chain.insert(place_in(chain, plan), Member.of(plan, request))
        plans.append(plan)
    return plans


def _published(ledger: Ledger, trace: Trace, subject: str, key: bytes | None) -> list[Member]:
    """The versions of a recording that are published, the finest first.

    Raises Refused for noise that was drawn under another key: it cannot be drawn again.
    """
    steps = placed(trace.positions)
    content = content_of(trace.times, steps[1])
    prints = prints_of(ledger.key, content, trace.times, steps[1])
    with ledger.open() as book:
        chain = chain_of(book, earlier(book, subject, "", *span(trace), prints))
    recording = (trace.times.astype("<i8").tobytes(), steps[1].astype("<i8").tobytes())
    for member in chain:
        if member.layer is not None:
            about = (*recording, *member.layer.about)
            if identified(ledger, trace, about, key).request != member.request:
                raise Refused(
                    "a version must be drawn from the earlier one, got another recording or "
                    "another key: read the file and state --key as for the earlier version"
                )
    return chain
