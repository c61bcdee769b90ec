"""First answers, kept for a while, so that a repeated message gets its first answer verbatim.

Requests may arrive out of order: the shell hands on a delivery when its file is checked, and the first claims
when the whole fleet is there. So a number is too old only if it is below one whose answer was dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from farm import messages as msg

#: Answers kept per worker; a worker has a few requests outstanding at most.
ANSWERS_MAX: Final = 64


class Answers(OrderedDict[int, msg.AnyAnswer]):
    """The answers to one worker since ``join``, by request number, oldest first."""

    def __init__(self, join: msg.Join | None = None) -> None:
        super().__init__()
        self._join = join
        self.followed = False  #: whether any request followed the join
        self._dropped = -1  # highest number whose answer is not kept any more

    def repeated(self, seq: int) -> msg.AnyAnswer | None:
        """The first answer to request ``seq`` if it came before; None if it is new."""
        if seq in self:
            return self[seq]
        if seq <= self._dropped:
            return msg.Refused(seq=seq, received=str(seq), reason="too old to be repeated", kind="state")
        return None

    def joined_by(self, join: msg.Join) -> bool:
        """Whether ``join`` is the same message once more, not that of a process which took this one's place:
        told by its process id, or by nothing having followed."""
        told_apart = join.seq is not None and join.pid is not None
        return join == self._join and (told_apart or not self.followed)

    def keep(self, seq: int, answer: msg.AnyAnswer) -> msg.AnyAnswer:
        """Number the answer, keep it and hand it back."""
        answer = numbered(answer, seq)
        self[seq] = answer
        if len(self) > ANSWERS_MAX:
            oldest, _ = self.popitem(last=False)
            self._dropped = max(self._dropped, oldest)
        return answer


def numbered(answer: msg.AnyAnswer, seq: int | None) -> msg.AnyAnswer:
    return answer if seq is None else msgspec.structs.replace(answer, seq=seq)
