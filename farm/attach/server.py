"""The run's side of attaching: hands the log to whoever connects, and takes their orders.

Theory of operation. A thread with an event loop of its own, so that nothing a client does is felt by the
relay's loop: what that one pays for a record is to put it into a ring. A client has no queue: it has a
number, that of the next record it gets. Each turn takes the next piece from the ring or, if it has fallen out
of that, from the journal, and waits until it is on its way. So a client that is slow costs nothing and misses
nothing, however far it falls behind. One that takes nothing at all for a while is cut off; it can come back
and go on with the number it had.

Rules of this file:
- bounded everywhere: clients, frames they send, the ring, one piece under way each, one question to the
  journal at a time;
- whatever a client sends ends at most that client;
- records that are not journalled are told by the newest of each kind, to clients that know all the rest;
- at the end everybody gets what they still miss and the farewell, within ``FAREWELL_SECONDS``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from farm.attach import wire
from farm.attach.address import connect, listen, release, sockets
from farm.commands import AnyCommand
from farm.errors import OutputError
from farm.events import Record, encode_record
from farm.journal import JournalWriter

CLIENTS_MAX = 16
#: Newest records that are kept for clients; about what a busy run tells in some seconds.
RING_RECORDS = 4000
#: How long a client may take nothing of what is sent to it.
PATIENCE_SECONDS = 20.0
#: How long a client may wait before it says what it wants.
HELLO_SECONDS = 5.0
FAREWELL_SECONDS = 2.0
#: Between two pieces of news: the console draws no more often.
BREATH_SECONDS = 0.05
#: A client hears something at least so often.
CLOCK_SECONDS = 1.0
#: Between two orders of a client.
ORDER_SECONDS = 0.02
_READ_BYTES = 1 << 16
#: Beyond this, what is sent waits in the server's hands and not in the socket's.
_BUFFER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What clients are told of the run at once."""

    run_id: str
    output: str
    folder: str
    pid: int
    history: int = 0


class _Left(Exception):
    """The client is gone, or is not worth talking to any more."""


@dataclass(slots=True, eq=False)
class _Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    unframer: wire.Unframer
    next: int = 0  #: number of the next record it gets
    seen: int = 0  #: of the records without a number, how many had come when it got the newest
    readonly: bool = False
    inbox: deque[bytes] = field(default_factory=deque)  #: bodies that came with others


class AttachServer:
    """Serves one run. ``now``: its lease time; ``send``: where orders go (``Source.send``).

    ``publish``, ``opened`` and ``ended`` are for the farm's thread, the rest for the one that made it.
    """

    def __init__(
        self,
        about: About,
        *,
        now: Callable[[], float],
        send: Callable[[AnyCommand], str | None],
        patience_seconds: float = PATIENCE_SECONDS,
        ring_records: int = RING_RECORDS,
    ) -> None:
        self._path = Path()
        self._about = about
        self._now = now
        self._send = send
        self._patience = patience_seconds
        self._lock = threading.Lock()  # of the next four
        self._ring: deque[Record] = deque(maxlen=ring_records)
        self._records = 0  #: numbered ones so far
        self._passing: dict[
            str, tuple[int, Record]
        ] = {}  #: the newest of each kind, and the how many-th it is
        self._passed = 0
        self._journal: JournalWriter | None = None
        self._bye: wire.Bye | None = None
        self._clients: set[_Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: socket.socket | None = None
        self._inode = 0
        self._news = asyncio.Event()
        self._close_now = asyncio.Event()
        self._told = False  #: the loop is about to hear of news
        self._thread = threading.Thread(target=self._main, name="attach", daemon=True)

    # --- for who runs the run ----------------------------------------------------------------------------

    def start(self, path: Path) -> None:
        """Listen at ``path``. Call it as the one who holds the run folder. Raises OutputError."""
        self._listener, self._inode = listen(path)
        self._path = path
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def publish(self, records: Sequence[Record]) -> None:
        """These happened, and are durable."""
        with self._lock:
            for record in records:
                if record.seq >= 0:
                    self._ring.append(record)
                    self._records = record.seq + 1
                else:
                    self._passed += 1
                    self._passing[type(record.event).__name__] = (self._passed, record)
        self._tell()

    def opened(self, journal: JournalWriter) -> None:
        """From now on what was published can be read again."""
        self._journal = journal
        self._tell()

    def ended(self, exit_code: int, message: str) -> None:
        """Nothing more will be published."""
        self._bye = wire.Bye(exit_code=exit_code, message=message, records=self._records)
        self._tell()

    def close(self) -> None:
        """Let clients have the end, for a moment; then stop. Closing twice, or before the start, is fine."""
        if self._loop is None or not self._thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._close_now.set)
        self._thread.join(2 * FAREWELL_SECONDS)

    def _tell(self) -> None:
        """Wake the clients' tasks, if there are any."""
        if self._loop is None or self._told or not self._clients:
            return
        self._told = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake)

    # --- the server's thread -----------------------------------------------------------------------------

    def _main(self) -> None:
        assert self._loop is not None and self._listener is not None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # type: ignore[arg-type, return-value]
                runner.run(self._serve())
        finally:
            self._listener.close()
            release(self._path, self._inode)

    async def _serve(self) -> None:
        # What asyncio has to say of a client's end would be printed onto what may be a console's screen.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        _sweep(self._path)
        server = await asyncio.start_unix_server(self._client, sock=self._listener, limit=_READ_BYTES)
        await self._close_now.wait()
        server.close()
        self._wake()
        await self._gone(FAREWELL_SECONDS)
        for client in list(self._clients):
            client.writer.transport.abort()
        await self._gone(FAREWELL_SECONDS)

    async def _gone(self, timeout_seconds: float) -> None:
        """Wait until all clients are gone, or the time is over."""
        leave_at = asyncio.get_running_loop().time() + timeout_seconds
        while self._clients and asyncio.get_running_loop().time() < leave_at:
            await asyncio.sleep(BREATH_SECONDS)

    def _wake(self) -> None:
        self._told = False
        self._news.set()
        self._news = asyncio.Event()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(reader, writer, wire.Unframer(wire.ORDER_BYTES_MAX))
        writer.transport.set_write_buffer_limits(high=_BUFFER_BYTES)
        full = len(self._clients) >= CLIENTS_MAX
        if len(self._clients) >= 2 * CLIENTS_MAX:  # not even time to be told why
            writer.close()
            return
        self._clients.add(client)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = await self._hear(client)
            refusal = _refusal(hello, full)
            if refusal:
                await self._say(client, wire.Refused(reason=refusal))
                return
            assert isinstance(hello, wire.Hello)
            client.next, client.readonly = max(hello.since, 0), hello.readonly
            await self._say(client, self._welcome())
            await self._attend(client)
        except (_Left, TimeoutError, OSError):
            pass
        finally:
            self._clients.discard(client)
            writer.close()

    def _welcome(self) -> wire.Welcome:
        about = self._about
        return wire.Welcome(
            run_id=about.run_id,
            output=about.output,
            folder=about.folder,
            pid=about.pid,
            host=socket.gethostname(),
            now=self._now(),
            records=self._records,
            history=about.history,
        )

    async def _attend(self, client: _Client) -> None:
        """Tell and listen until one of both ends, for whatever reason: that ends at most this client."""
        both = {asyncio.create_task(self._tell_all(client)), asyncio.create_task(self._obey(client))}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _tell_all(self, client: _Client) -> None:
        """The log, the news, and the farewell."""
        while True:
            news = self._news
            bye = self._bye
            lines = await self._piece(client.next)
            if lines:
                await self._say(client, wire.Records(first=client.next, lines=tuple(lines), now=self._now()))
                client.next += len(lines)
            elif bye is not None:
                await self._say(client, bye)
                return
            else:
                await self._say(client, wire.Passing(now=self._now(), lines=self._new_passing(client)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CLOCK_SECONDS):
                        await news.wait()
                await asyncio.sleep(BREATH_SECONDS if self._bye is None else 0)

    async def _piece(self, first: int) -> Sequence[bytes]:
        """The next records from number ``first`` on; none: there are no more, or none that can be had."""
        while True:
            with self._lock:
                if first >= self._records:
                    return ()
                oldest = self._ring[0].seq
                records = list(islice(self._ring, first - oldest, None)) if first >= oldest else []
            if records:
                return _encoded(records)
            if self._journal is not None:
                answer = asyncio.wrap_future(self._journal.read(first, wire.PIECE_RECORDS, wire.PIECE_BYTES))
                await asyncio.wait({answer})
                if not answer.cancelled():
                    return () if answer.exception() else answer.result()
            if self._bye is not None:
                return ()
            await asyncio.sleep(BREATH_SECONDS)  # the log can't be read yet, or not any more: the end is near

    def _new_passing(self, client: _Client) -> tuple[bytes, ...]:
        with self._lock:
            new = sorted(
                ((number, record) for number, record in self._passing.values() if number > client.seen),
                key=lambda pair: pair[0],
            )
            client.seen = self._passed
        return tuple(encode_record(record) for _, record in new)

    async def _obey(self, client: _Client) -> None:
        while True:
            order = await self._hear(client)
            if not isinstance(order, wire.Order):
                raise _Left
            refusal = "this view was opened read-only" if client.readonly else self._send(order.command)
            await self._say(client, wire.Answer(number=order.number, refusal=refusal or ""))
            await asyncio.sleep(ORDER_SECONDS)

    async def _hear(self, client: _Client) -> wire.FromClient:
        """The client's next message. Raises _Left, OSError."""
        while not client.inbox:
            data = await client.reader.read(_READ_BYTES)
            if not data:
                raise _Left
            try:
                client.inbox.extend(client.unframer.feed(data))
            except ValueError as error:
                raise _Left from error
        try:
            return wire.from_client(client.inbox.popleft())
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _Left from error

    async def _say(self, client: _Client, message: wire.Message) -> None:
        """Send, and wait until there is room for more. Raises TimeoutError, OSError."""
        client.writer.write(wire.frame(message))
        async with asyncio.timeout(self._patience):
            await client.writer.drain()


def _encoded(records: Sequence[Record]) -> list[bytes]:
    """The first of them, as many as go into one piece."""
    lines: list[bytes] = []
    size = 0
    for record in islice(records, wire.PIECE_RECORDS):
        if size >= wire.PIECE_BYTES:
            break
        lines.append(encode_record(record))
        size += len(lines[-1])
    return lines


def _refusal(hello: wire.FromClient, full: bool) -> str:
    """Why this client is not served; empty: it is."""
    if not isinstance(hello, wire.Hello):
        return "it has to say first what it is"
    if hello.protocol != wire.PROTOCOL_VERSION or hello.build != wire.this_build():
        return f"the run was started by {wire.this_build()} and this is {hello.build}; use that one"
    return f"{CLIENTS_MAX} are attached already, and more can't be" if full else ""


def _sweep(own: Path) -> None:
    """Remove the sockets that killed runs left."""
    for path in sockets(own.parent):
        if path != own:
            with contextlib.suppress(OutputError):
                connection = connect(path, 0.2)
                if connection is not None:
                    connection.close()
