"""What becomes of parts, in words."""

from __future__ import annotations

from typing import Final

from console.text import plural, size
from console.wording.lines import NO_FAILURE, Table, Words
from farm import events as ev


def _part_credited(e: ev.PartCredited) -> Words:
    text = f"credited {e.token}  part {e.part}, {plural(e.frames, 'frame')}, {size(e.size_bytes)}"
    if e.lost_frames:
        text += f", {plural(e.lost_frames, 'source frame')} could not be decoded"
    return "credit", e.worker, text


def _part_superseded(e: ev.PartSuperseded) -> Words:
    why = f"  {e.reason}" if e.reason else ""
    return "superseded", e.worker, f"second copy of part {e.part} under {e.token}: 0 frames credited{why}"


def _part_adopted(e: ev.PartAdopted) -> Words:
    return "credit", "", f"adopted part {e.part} found in the store, {plural(e.frames, 'frame')}"


def _part_voided(e: ev.PartVoided) -> Words:
    return "warning", "", f"part {e.part} is not trusted any more and is open again: {e.reason}"


def _part_failed(e: ev.PartFailed) -> Words:
    if e.kind in NO_FAILURE:
        return "end", e.worker, f"part {e.part} counts a try, {e.tries} so far ({e.kind})"
    return "failure", e.worker, f"part {e.part} failed, try {e.tries} ({e.kind}): {e.message}"


def _part_retried(e: ev.PartRetried) -> Words:
    return "reopen", "", f"part {e.part}, set aside before, is tried again"


def _part_set_aside(e: ev.PartSetAside) -> Words:
    tries = "1 try" if e.tries == 1 else f"{e.tries} tries"
    return "set aside", "", f"part {e.part} SET ASIDE after {tries}: {e.reason}"


def _part_diverged(e: ev.PartDiverged) -> Words:
    digests = f"{e.sha256[:8]}, credited {e.credited_sha256[:8]}"
    return (
        "error",
        e.worker,
        f"part {e.part} under {e.token} has other bytes than the credited copy ({digests})",
    )


def _part_settled(e: ev.PartSettled) -> Words:
    wrong = (
        f"{e.odd} was wrong and is not trusted any more" if e.odd else "the one found in the store was not"
    )
    return "error", e.odd or "", f"the copies of part {e.part}: {e.by}'s decides; {wrong}"


def _part_unsettled(e: ev.PartUnsettled) -> Words:
    return "error", "", f"part {e.part}: {e.reason}"


def _seam_mismatched(e: ev.SeamMismatched) -> Words:
    return (
        "warning",
        "",
        f"parts {e.part} and {e.next_part} don't meet: the source is read from its start now",
    )


WORDS: Final[Table] = {
    ev.PartCredited: _part_credited,
    ev.PartSuperseded: _part_superseded,
    ev.PartAdopted: _part_adopted,
    ev.PartVoided: _part_voided,
    ev.PartFailed: _part_failed,
    ev.PartSetAside: _part_set_aside,
    ev.PartRetried: _part_retried,
    ev.PartDiverged: _part_diverged,
    ev.PartSettled: _part_settled,
    ev.PartUnsettled: _part_unsettled,
    ev.SeamMismatched: _seam_mismatched,
}
