"""Compares an output with its manifest: the first difference, and what kind of difference it is.

Packets are compared in decoding order, by the CRC-32 of their data and by their times. Which frame a packet
is follows from its time: frame n of an output is the n-th that is shown.

Rules of this file:
- pure: no file is opened here;
- an output that another tool has written anew, with another clock or in another container, is compared as far
  as it can be: times to a millisecond (or a tick, where that is longer) and after a constant shift, bytes
  where both containers write the same; what could not be compared is said in the notes, never passed over;
- nothing is called missing or moved on the word of one packet, where there are more to ask.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

from farm.contents import Contents, StreamContents
from farm.difference import Comparison, Difference, Kind, in_part
from farm.manifest import Manifest, ManifestPart, Packets
from farm.sequence import spans

#: So many packets that follow have to agree before a packet counts as one from another place.
_WITNESSES = 8
_ROUNDED_SECONDS = Fraction(1, 1000)  #: what Matroska rounds times to, and may have on the way
#: By so much the start or end of another stream may be off once another tool has rewritten it.
_REMUXED_SECONDS = Fraction(1, 10)


def compare(manifest: Manifest, contents: Contents) -> Comparison:
    """Raises InputError if the manifest is damaged."""
    right = manifest.packets()
    if manifest.is_images:
        return _Images(right, contents, manifest.settings.images.existing).compare()
    return _Film(manifest, right, contents).compare()


class _Film:
    """One comparison of two films."""

    def __init__(self, manifest: Manifest, right: Packets, found: Contents) -> None:
        self._manifest = manifest
        self._right = right
        self._found = found
        self._shown = sorted(right.pts)
        self._base = Fraction(*manifest.video.time_base)
        self._remuxed = found.container != manifest.container
        self._exact = not self._remuxed and found.time_base == self._base
        self._notes: list[str] = []
        self._complete = True
        codec = found.video.codec == manifest.video.codec
        self._same_bytes = found.video.length_prefixed == manifest.video.length_prefixed or not codec
        self._scales = self._clocks()

    def compare(self) -> Comparison:
        if self._remuxed:
            self._notes.append(
                f"it is {self._found.container} now and was {self._manifest.container}: times were compared "
                "to a millisecond; codec headers, shape, rotation and colours were not"
            )
        elif not self._exact:
            self._notes.append(
                "it was written anew, with another clock: times were compared to a millisecond"
            )
        if not self._same_bytes:
            self._leave_out(
                f"the bytes of its video could not be compared: {self._found.container} writes "
                f"{self._found.video.codec} in another way than {self._manifest.container}; frames and their "
                "times were"
            )
        packet = self._first()
        difference = (
            self._at(packet) if packet is not None else self._header() or self._look() or self._streams()
        )
        agreed = len(self._right.pts) if packet is None else packet
        size, was = self._found.size_bytes, self._manifest.size_bytes
        if difference is None and not self._remuxed and size != was:
            self._notes.append(
                f"it has {size:,} bytes and had {was:,}: its packets are the same, what is around them (such "
                "as tags) is not"
            )
        return Comparison(
            difference=difference, agreed=agreed, complete=self._complete, notes=tuple(self._notes)
        )

    def _leave_out(self, note: str) -> None:
        self._complete = False
        self._notes.append(note)

    # --- times -------------------------------------------------------------------------------------------

    def _clocks(self) -> tuple[int, int, int, int, int]:
        """What makes times of both comparable as whole numbers: a factor and an origin for what is found, the
        same for what is right, and how far apart they may be."""
        mine, its = self._found.time_base, self._base
        factor, other = mine.numerator * its.denominator, its.numerator * mine.denominator
        if self._exact:
            return factor, 0, other, 0, 0
        origin = min(self._found.pts, default=0)
        apart = math.ceil(_ROUNDED_SECONDS * mine.denominator * its.denominator)
        zero = self._shown[0] if self._shown else 0
        return factor, origin, other, zero, max(factor, other, apart)

    def _same_time(self, right: int, found: int) -> bool:
        factor, origin, other, zero, apart = self._scales
        found_time = (self._found.pts[found] - origin) * factor
        return abs(found_time - (self._right.pts[right] - zero) * other) <= apart

    def _late_seconds(self, packet: int) -> float:
        """How much later than it should be a packet is shown."""
        factor, origin, other, zero, _ = self._scales
        late = Fraction((self._found.pts[packet] - origin) * factor, other) + zero - self._right.pts[packet]
        return float(late * self._base)

    # --- packets -----------------------------------------------------------------------------------------

    def _same(self, right: int, found: int) -> bool:
        same = not self._same_bytes or self._right.checksums[right] == self._found.checksums[found]
        return same and self._same_time(right, found)

    def _first(self) -> int | None:
        """The first packet that differs."""
        there, due = len(self._found.pts), len(self._right.pts)
        if self._exact and self._same_bytes and there == due:
            alike = self._right.pts == self._found.pts and self._right.checksums == self._found.checksums
            if alike:
                return None
        for packet in range(min(there, due)):
            if not self._same(packet, packet):
                return packet
        return min(there, due) if there != due else None

    def _at(self, packet: int) -> Difference:
        there, due = len(self._found.pts), len(self._right.pts)
        part = self._right.part_of(packet)
        cut_off = self._cut_off(packet)
        if cut_off:
            return self._named("truncated", packet, f"it is truncated: {cut_off}; {self._frame(packet)} is")
        if packet >= due:
            seconds = float(self._found.pts[packet] * self._found.time_base)
            words = f"it has {_frames(there - due)} too many at its end, from {seconds:.3f} s on"
            return Difference(kind="extra", words=words, seconds=seconds)
        if packet >= there:
            return self._missing(packet, due - there)
        gone = self._offset(packet)
        if gone and self._elsewhere(packet, gone):
            stands = self._right.part_of(packet + gone)
            what = "packets of the same part" if stands is part else f"those of part {_number(stands)}"
            words = f"its packets are in another order: where {self._frame(packet)} belongs are {what};"
            return self._named("order", packet, f"{words} it is")
        if gone:
            return self._missing(packet, gone)
        many = self._extra(packet)
        if many:
            words = f"{_frames(many)} too many stand before {self._frame(packet)};"
            return self._named("extra", packet, f"{words} that is")
        if self._same_bytes and self._right.checksums[packet] != self._found.checksums[packet]:
            return self._named("bytes", packet, f"{self._frame(packet)} has other bytes;", "it is")
        late = self._late_seconds(packet)
        how = f"{abs(late):.6f}".rstrip("0").rstrip(".") + (" s later" if late > 0 else " s sooner")
        return self._named("time", packet, f"{self._frame(packet)} is shown {how} than it was made; it is")

    def _missing(self, packet: int, count: int) -> Difference:
        first = min(range(packet, packet + count), key=self._right.pts.__getitem__)
        what = "is missing" if count == 1 else f"and {count - 1} more are missing"
        return self._named("missing", first, f"{self._frame(first)} {what}; it is")

    def _cut_off(self, packet: int) -> str:
        """How many bytes are there, if the file ends too soon and that is what is wrong; the last packet of
        what is there may be a piece of one."""
        there, due = len(self._found.pts), len(self._right.pts)
        at_end = there - 1 <= packet < due and there <= due
        return self._short if at_end else ""

    @property
    def _short(self) -> str:
        size, was = self._found.size_bytes, self._manifest.size_bytes
        # An mp4 that ends well says by itself how many frames it has: then it was written anew, without them.
        whole = self._found.container == "mp4" and not self._found.fault
        return "" if self._remuxed or whole or size >= was else f"{size:,} of {was:,} bytes are there"

    def _offset(self, packet: int) -> int:
        """How many packets are passed over, if what stands here comes so many later; by times too, or where
        that finds none by bytes alone. 0: it comes from nowhere."""
        if not self._same_bytes:
            return self._offset_by_times(packet)
        right, found = self._right.checksums, self._found.checksums
        by_bytes = 0
        for place in _places(right, found[packet], packet + 1):
            if not _run_on(right, place, found, packet):
                continue
            if self._same_time(place, packet):
                return place - packet
            by_bytes = by_bytes or place - packet
        return by_bytes if right[packet] != found[packet] else 0

    def _offset_by_times(self, packet: int) -> int:
        for place in range(packet + 1, min(len(self._right.pts), packet + 10_000)):
            rest = min(_WITNESSES, len(self._right.pts) - place, len(self._found.pts) - packet)
            if all(self._same_time(place + n, packet + n) for n in range(rest)):
                return place - packet
        return 0

    def _extra(self, packet: int) -> int:
        right, found = self._right.checksums, self._found.checksums
        if not self._same_bytes or len(found) <= len(right):
            return 0
        places = _places(found, right[packet], packet + 1)
        return next((place - packet for place in places if _run_on(found, place, right, packet)), 0)

    def _elsewhere(self, packet: int, count: int) -> bool:
        """Whether the ``count`` packets that don't stand here stand further on: there are more of their kind
        there than belong there."""
        right, found = self._right.checksums, self._found.checksums
        wanted = Counter(right[packet : packet + min(count, _WITNESSES)])
        belong, stand = right[packet + count :], found[packet:]
        return all(stand.count(one) >= belong.count(one) + many for one, many in wanted.items())

    # --- what isn't in the packets of the video ------------------------------------------------------------

    def _header(self) -> Difference | None:
        mine, its = self._found.video, self._manifest.video
        if mine.codec != its.codec:
            return Difference(kind="stream", words=f"its video is {mine.codec} and was {its.codec}")
        if self._same_bytes and mine.sha256 != its.sha256:
            return Difference(
                kind="bytes", words="its video has other bytes, in a place that its checksums don't tell"
            )
        if not self._remuxed and mine.header_sha256 != its.header_sha256:
            words = "the header of its video, which a decoder is given first, has other bytes"
            return Difference(kind="header", words=words)
        return None

    def _look(self) -> Difference | None:
        if self._remuxed:
            return None
        mine, its = self._found.video.looks, self._manifest.video.looks
        for name, value in its.items():
            if name in mine and mine[name] != value:
                return Difference(
                    kind="look", words=f"the {name} of its video is {mine[name]} and was {value}"
                )
        return None

    def _streams(self) -> Difference | None:
        due, there = _by_kind(self._manifest.others), _by_kind(self._found.others)
        for kind, streams in due.items():
            for number, its in enumerate(streams):
                mine = there[kind][number] if number < len(there[kind]) else None
                words = self._stream(its, mine, number)
                if words and mine is not None and mine.packets < its.packets and self._short:
                    words += f", and the file is truncated: {self._short}"
                    return Difference(kind="truncated", words=f"its {its.words(number)} {words}")
                if words:
                    return Difference(kind="stream", words=f"its {its.words(number)} {words}")
        for kind, streams in there.items():
            for number, mine in enumerate(streams[len(due[kind]) :], len(due[kind])):
                words = f"it has a {mine.words(number)} that its run didn't write"
                if not (self._remuxed and kind == "data"):  # chapters, of which some containers make a stream
                    return Difference(kind="stream", words=words)
                self._notes.append(words)
        return None

    def _stream(self, its: StreamContents, mine: StreamContents | None, number: int) -> str:
        """In what way another stream differs, in words that follow its name; empty if in none."""
        if mine is None:
            return "is missing"
        if mine.codec != its.codec:
            if self._remuxed and its.kind == "subtitle":
                self._leave_out(f"its {its.words(number)} was made {mine.codec} and was not compared")
                return ""
            return f"is {mine.codec} now"
        if self._remuxed and bool(mine.header_sha256) != bool(its.header_sha256):
            self._leave_out(
                f"its {its.words(number)} is written in another way by {self._found.container} and was not "
                "compared"
            )
            return ""
        if mine.packets != its.packets:
            return f"has {mine.packets} packets and had {its.packets}"
        if mine.sha256 != its.sha256:
            return "has other bytes"
        if not self._remuxed and mine.header_sha256 != its.header_sha256:
            return "has another codec header"
        if not self._remuxed and mine.language != its.language:
            return f"has the language {mine.language or 'not set'}"
        return self._stream_times(its, mine)

    def _stream_times(self, its: StreamContents, mine: StreamContents) -> str:
        exact = self._exact and mine.time_base == its.time_base
        shift = Fraction(0)
        if not exact and self._found.pts and self._shown:
            shift = min(self._found.pts) * self._found.time_base - self._shown[0] * self._base
        for what, ours, theirs in (
            ("begins", mine.first_pts, its.first_pts),
            ("ends", mine.last_pts, its.last_pts),
        ):
            if ours is None or theirs is None:
                continue
            off = ours * Fraction(*mine.time_base) - theirs * Fraction(*its.time_base) - shift
            if abs(off) > (0 if exact else _REMUXED_SECONDS):
                return f"{what} {abs(float(off)):.3f} s {'later' if off > 0 else 'sooner'} than it did"
        return ""

    # --- names -------------------------------------------------------------------------------------------

    def _frame(self, packet: int) -> str:
        number, seconds = self._place(packet)
        return f"frame {number} at {seconds:.3f} s"

    def _place(self, packet: int) -> tuple[int, float]:
        pts = self._right.pts[packet]
        return bisect_left(self._shown, pts), float(pts * self._base)

    def _named(self, kind: Kind, packet: int, words: str, before: str = "") -> Difference:
        """``words`` with the part and who made it at their end."""
        part = self._right.part_of(packet)
        number, seconds = self._place(packet)
        where = " ".join(text for text in (words, before, in_part(part)) if text)
        return Difference(kind=kind, words=where, frame=number, seconds=seconds, part=part)


class _Images:
    """One comparison of two sets of numbered images."""

    def __init__(self, right: Packets, found: Contents, existing: Sequence[tuple[int, int]]) -> None:
        self._right = right
        self._found = dict(zip(found.pts, found.checksums, strict=True))
        self._existing = existing

    def compare(self) -> Comparison:
        due = self._right.pts
        order = sorted(range(len(due)), key=due.__getitem__)
        for agreed, place in enumerate(order):
            number = due[place]
            if number not in self._found:
                lacking = sorted(set(due) - self._found.keys())
                what = f"image {number} is missing" + (
                    f" (with others: {spans(lacking)})" if len(lacking) > 1 else ""
                )
                return Comparison(difference=self._named("missing", place, what), agreed=agreed)
            if self._found[number] != self._right.checksums[place]:
                difference = self._named("bytes", place, f"image {number} has other bytes")
                return Comparison(difference=difference, agreed=agreed)
        extra = [number for number in sorted(self._found.keys() - set(due)) if not self._kept(number)]
        if extra:
            what = f"it has images that its run didn't write: {spans(extra)}"
            return Comparison(difference=Difference(kind="extra", words=what), agreed=len(due))
        return Comparison(difference=None, agreed=len(due))

    def _kept(self, number: int) -> bool:
        """Whether it was there before the run, which left it alone."""
        return any(first <= number < stop for first, stop in self._existing)

    def _named(self, kind: Kind, place: int, words: str) -> Difference:
        part = self._right.part_of(place)
        return Difference(kind=kind, words=f"{words}; it is {in_part(part)}", frame=place, part=part)


def _number(part: ManifestPart | None) -> str:
    return "none" if part is None else str(part.part)


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"


def _by_kind(streams: Sequence[StreamContents]) -> defaultdict[str, list[StreamContents]]:
    kinds: defaultdict[str, list[StreamContents]] = defaultdict(list)
    for stream in streams:
        kinds[stream.kind].append(stream)
    return kinds


def _places(numbers: array[int], wanted: int, first: int) -> Iterator[int]:
    """Where ``wanted`` stands, from ``first`` on."""
    place = first
    try:
        while True:
            place = numbers.index(wanted, place)
            yield place
            place += 1
    except ValueError:
        return


def _run_on(one: array[int], place: int, other: array[int], other_place: int) -> bool:
    """Whether both go on alike from there, for as long as that is asked; where one of them ends before, both
    must."""
    rest = min(_WITNESSES, len(one) - place, len(other) - other_place)
    if rest < _WITNESSES and len(one) - place != len(other) - other_place:
        return False
    return one[place : place + rest] == other[other_place : other_place + rest]
