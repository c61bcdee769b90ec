"""The keys that throttle, add and send away workers, copy and release chunks, and change the policy; and the
worker's box."""

from __future__ import annotations

import asyncio

import pytest
from textual import events

from console.app import ConsoleApp
from console.keycommands import key_commands
from console.modals.chunk import ChunkDetail
from console.modals.dialog import Question
from console.modals.policy import PolicyPrompt
from console.modals.prompt import Prompt
from console.modals.worker import facts_of
from console.model import Model
from console.optionsline import parse_options, spell_options
from farm import commands as cmd
from farm import events as ev
from farm.errors import UsageError
from farm.fleet import WorkerProfile
from farm.policies.catalogue import policies, tails
from farm.policies.registry import POLICIES, parse_policy, parse_tail
from farm.scenario.joining import parse_workers
from tests.console.player import Player
from tests.console.story import play
from tests.console.telling import Story
from tests.console.test_app import (
    AppPilot,
    colour_terminal,
    console,
    on_loop,
    player_of,
    ready,
    said,
    screen_text,
    wait_for,
)

__all__ = ["colour_terminal"]


async def enter(pilot: AppPilot, app: ConsoleApp, *, key: str, text: str) -> Prompt:
    """Open a box with ``key``, replace what it says, and press enter."""
    await pilot.press(key)
    await wait_for(pilot, lambda: isinstance(app.screen, Prompt) and app.screen.entry.has_focus, "the box")
    assert isinstance(app.screen, Prompt)
    prompt = app.screen
    prompt.entry.value = text
    await pilot.press("enter")
    await wait_for(pilot, lambda: app.screen is app.live or prompt.fault, "what comes of it")
    return prompt


def sent(app: ConsoleApp) -> list[cmd.AnyCommand]:
    return player_of(app).commands


# --- workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "fps"), [("12.5", 12.5), ("max", None)])
@on_loop
async def test_t_throttles_the_selected_worker(text: str, fps: float | None) -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("j")
        await enter(pilot, app, key="t", text=text)
        assert sent(app) == [cmd.ThrottleWorker(worker="w2", fps=fps)]
        assert said(app).startswith("w2: ")


@on_loop
async def test_a_cap_that_is_none_is_refused_in_the_box_and_can_be_mended() -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        prompt = await enter(pilot, app, key="t", text="fast")
        assert "'fast' is no speed: give frames per second" in prompt.fault and sent(app) == []
        assert "is no speed" in screen_text(app)
        await pilot.press("x")
        await wait_for(pilot, lambda: not prompt.fault, "the sentence to go")
        prompt.entry.value = "3,4"
        await pilot.press("enter")
        await wait_for(pilot, lambda: prompt.fault, "the next sentence")
        assert prompt.fault == "One worker has one cap: give one number, or max."
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "no box")
        assert sent(app) == []


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
@on_loop
async def test_what_is_typed_before_the_box_is_there_is_not_lost(turns: int) -> None:
    """A terminal on a busy machine brings many keys at once: ``t`` and a new cap."""
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        for key in ("t", *["backspace"] * 3, "1", "2", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
            for _ in range(turns):
                await asyncio.sleep(0)
        await wait_for(pilot, lambda: sent(app), "the command")
        assert sent(app) == [cmd.ThrottleWorker(worker="w1", fps=12.0)]


@on_loop
async def test_keys_that_come_in_one_read_are_taken_in_their_order() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("t")
        await wait_for(
            pilot, lambda: isinstance(app.screen, Prompt) and app.screen.entry.has_focus, "the box"
        )
        for key in (*["backspace"] * 3, "7", "backspace", "2", "0", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_for(pilot, lambda: sent(app), "the command")
        assert sent(app) == [cmd.ThrottleWorker(worker="w1", fps=20.0)]


@on_loop
async def test_a_adds_workers_with_their_profiles() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await enter(pilot, app, key="a", text="12,max")
        profiles = [WorkerProfile(name="", fps_cap=12.0), WorkerProfile(name="")]
        assert sent(app) == [cmd.AddWorker(profile=profile) for profile in profiles]
        assert said(app) == "Adding a worker: no limit."
        prompt = await enter(pilot, app, key="a", text="fpz = 12")
        assert prompt.fault.startswith("worker: worker[0].fpz: unknown field (did you mean 'fps'?)")


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 10), (300, 80)])
@on_loop
async def test_boxes_with_an_entry_show_it_at_any_size(size: tuple[int, int]) -> None:
    async with console(ascii_only=size[0] == 80).run_test(size=size) as pilot:
        app = await ready(pilot)
        for key, begins in (("t", "30"), ("a", "max")):
            await pilot.press(key)
            await wait_for(pilot, lambda: isinstance(app.screen, Prompt), "the box")
            await wait_for(pilot, lambda b=begins: b in screen_text(app), "the entry")  # type: ignore[misc]
            prompt = app.screen
            assert isinstance(prompt, Prompt)
            await wait_for(pilot, lambda p=prompt: p.entry.region.bottom <= size[1], "its place")  # type: ignore[misc]
            assert size[0] != 80 or screen_text(app).isascii()
            await pilot.press("escape")
            await wait_for(pilot, lambda: app.screen is app.live, "no box")


def test_workers_to_add_are_spelt_as_in_a_fleet_file() -> None:
    (worker,) = parse_workers("fps = max, overhead = 2, memory_gb = 1, link = { mib_per_second = 2 }")
    assert (worker.name, worker.fps_cap, worker.overhead_seconds) == ("", None, 2.0)
    assert worker.memory_bytes == 1 << 30 and worker.link is not None and worker.link.mib_per_second == 2.0
    assert [w.name for w in parse_workers('name = "lab", count = 2, fps = 3')] == ["lab-1", "lab-2"]
    for text, words in (
        ("", "is no speed"),
        ("-3", "is no speed"),
        ("fps = ", "worker: not TOML"),
        ("dies = 3", "happens in virtual time only"),
        ("threads = 3", "differs from the job's 1"),
    ):
        with pytest.raises(UsageError, match=words):
            parse_workers(text, threads=1)


@on_loop
async def test_w_asks_and_sends_the_worker_away() -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("w")
        await wait_for(pilot, lambda: isinstance(app.screen, Question), "the question")
        token = app.model.workers["w1"].token
        await wait_for(pilot, lambda: f"the rest of {token}" in screen_text(app), "what becomes of its claim")
        await pilot.press("w")
        await wait_for(pilot, lambda: app.screen is app.live, "the answer")
        assert sent(app) == [cmd.RemoveWorker(worker="w1")]


# --- chunks ----------------------------------------------------------------------------------------------


@on_loop
async def test_r_names_what_is_lost_and_releases_the_chunk() -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        claim = app.model.workers["w1"].claim
        assert claim is not None
        await pilot.press("r")
        await wait_for(pilot, lambda: isinstance(app.screen, Question), "the question")

        def text() -> str:
            return " ".join(screen_text(app).replace("│", " ").split())

        await wait_for(pilot, lambda: f"w1 holds {claim.token}" in text(), "who holds it")
        assert f"{claim.undelivered} frame" in text() and "open again, for other workers first" in text()
        await pilot.press("s")
        await wait_for(pilot, lambda: app.screen is app.live, "no box")
        assert sent(app) == []
        await pilot.press("r", "r")
        await wait_for(pilot, lambda: sent(app), "the command")
        assert sent(app) == [cmd.ReleaseClaim(claim=claim.chunk)]


@on_loop
async def test_c_has_the_chunk_copied_without_asking_since_nothing_is_lost() -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        claim = app.model.workers["w1"].claim
        assert claim is not None
        await pilot.press("c")
        await wait_for(pilot, lambda: sent(app), "the command")
        assert sent(app) == [cmd.DuplicateChunk(chunk=claim.chunk)]


@on_loop
async def test_what_nobody_holds_cannot_be_released_and_the_keys_are_grey() -> None:
    story = Story()
    story.join("w1")
    player = Player(story.records)
    player.open_end = True
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        words = {command.words for command in key_commands(app.live)}
        assert "throttle the worker" in words
        assert not {"release the worker's chunk", "have the worker's chunk copied"} & words
        app.action_release_chunk("c7")
        await wait_for(pilot, lambda: "Nobody holds c7 any more" in screen_text(app), "the words")


@on_loop
async def test_the_chunks_screen_and_a_chunk_s_box_act_on_their_chunk() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("3")
        await wait_for(pilot, lambda: app.screen is app.chunks and app.chunks.selected, "the screen")
        await pilot.press("g")
        words = {command.words for command in key_commands(app.chunks)}
        assert "release the chunk" not in words, "c0 is done"
        live = max(app.model.book.live)
        app.chunks.selected, app.chunks._index, app.chunks.following = live, live, False
        app.repaint()
        await pilot.press("c")
        assert sent(app) == [cmd.DuplicateChunk(chunk=f"c{live}")]
        await pilot.press("enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "its box")
        await pilot.press("r")
        await wait_for(pilot, lambda: isinstance(app.screen, Question), "the question")
        await pilot.press("r")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "its box again")
        assert sent(app)[1:] == [cmd.ReleaseClaim(claim=f"c{live}")]
        player_of(app).add(ev.DuplicateWanted(chunk=live, by="ada"))
        app.tick()
        app.repaint()
        await wait_for(pilot, lambda: f"a copy of c{live} is wanted by ada" in screen_text(app), "its story")


# --- the schedule ----------------------------------------------------------------------------------------


@on_loop
async def test_o_lists_what_there_is_and_changes_policy_tail_and_lease() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("o")
        await wait_for(pilot, lambda: isinstance(app.screen, PolicyPrompt), "the box")
        prompt = app.screen
        assert isinstance(prompt, PolicyPrompt)
        await wait_for(pilot, lambda: prompt.entry.has_focus, "the entry")
        assert prompt.entry.value == spell_options(app.model.options)
        text = screen_text(app)
        assert "guided,min=12,max" in text and "half an even share of what remains" in text
        await pilot.press("down", "down", "down", "up", "down", *",60")
        assert prompt.entry.value.startswith("fixed,60 duplicate-oldest,from=frontier lease=")
        await pilot.press("enter")
        await wait_for(pilot, lambda: sent(app), "the command")
        (change,) = sent(app)
        assert isinstance(change, cmd.ChangeOptions)
        assert change.options.policy == "fixed,60" and change.options.tail == app.model.options.tail
        fault = (await enter(pilot, app, key="o", text="fixd,60")).fault
        assert "no policy 'fixd' (did you mean 'fixed'?)" in fault


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 10)])
@on_loop
async def test_the_policy_under_the_cursor_can_be_seen_at_any_size(size: tuple[int, int]) -> None:
    async with console(ascii_only=size[0] == 80).run_test(size=size) as pilot:
        app = await ready(pilot)
        await pilot.press("o")
        await wait_for(pilot, lambda: isinstance(app.screen, PolicyPrompt), "the box")
        for _ in range(len(policies()) + len(tails())):
            await pilot.press("down")
        await wait_for(pilot, lambda: "> none" in screen_text(app), "the last one")
        for _ in range(len(policies()) + len(tails())):
            await pilot.press("up")
        await wait_for(pilot, lambda: "> fair" in screen_text(app), "the first one")


def test_the_line_of_options_takes_what_the_command_line_takes() -> None:
    options = ev.RelayOptions(halt="soon,fail=1")
    assert parse_options(spell_options(options), options) == options
    changed = parse_options("lease=30 split", options)
    assert (changed.lease_seconds, changed.tail, changed.policy) == (30.0, "split", options.policy)
    assert changed.halt == "soon,fail=1"
    for text, words in (
        ("", "give a policy"),
        ("fair static", "comes after another one of its kind"),
        ("lease=0", "give seconds above 0"),
        ("heartbeat=soon", "give seconds above 0"),
        ("late,x=1", "choose none, split, late"),
        ("guided,min=-1", "min must be"),
    ):
        with pytest.raises(UsageError, match=words):
            parse_options(text, options)


def test_the_catalogue_has_all_there_is_and_every_default_can_be_typed() -> None:
    assert [entry.name for entry in policies()] == list(POLICIES)
    for entry in policies():
        given = [word for word in entry.parameters.split(",") if "=" in word]
        assert parse_policy(",".join([entry.name, *given])).name == parse_policy(entry.name).name
        assert entry.about
    assert {parse_tail(entry.name).kind for entry in tails()} == {"none", "duplicate-oldest", "late", "split"}


# --- what is refused, and who may not --------------------------------------------------------------------


@on_loop
async def test_a_refusal_that_comes_later_is_said_and_one_of_before_is_not() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        player_of(app).add(ev.CommandRefused(command="Pause", reason="that was long ago"))
        app.tick()
        assert said(app) == ""
        await pilot.press("c")
        player_of(app).add(ev.CommandRefused(command="DuplicateChunk", reason="every worker has held c15"))
        app.tick()
        assert said(app) == "Refused: every worker has held c15"
        assert "refused, asked by operator: every worker has held c15" in screen_text(app)


@pytest.mark.parametrize("kind", ["readonly", "recording"])
@on_loop
async def test_who_only_looks_on_can_do_none_of_it(kind: str) -> None:
    player = Player(play(), world="recording" if kind == "recording" else "live")
    player.time = 60
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False, readonly=kind == "readonly")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        for key in "taorcw":
            await pilot.press(key)
        await pilot.pause()
        assert app.screen is app.live and player.commands == []
        words = " ".join(command.words for command in key_commands(app.live))
        assert not any(word in words for word in ("throttle", "add a worker", "policy", "release", "copied"))


# --- the worker's box ------------------------------------------------------------------------------------


def facts(model: Model, worker: str, now: float) -> dict[str, str]:
    rows = facts_of(model, model.workers[worker], now)
    return {row[0][0].strip(): row[1][0] for row in rows}


def test_the_worker_s_box_tells_profile_process_log_share_and_output() -> None:
    link = '{"mib_per_second":2.0,"latency_seconds":0.05}'
    profile = f'{{"name":"w2","fps_cap":12.0,"memory_bytes":800000000,"link":{link}}}'
    story = Story(frames=400, part=100, fleet=('{"name":"w1","fps_cap":null}', profile))
    story.join("w1")
    story.join("w2", fps_cap=12.0, overhead_seconds=2.0)
    one, two = story.grant("w1", 0, 3), story.grant("w2", 3, 4)
    story.at(5.0).credit(one, 0, render_seconds=4.0, size_bytes=3_000_000)
    story.at(8.0).credit(one, 1, render_seconds=4.0, size_bytes=3_000_000)
    story.at(14.0).credit(two, 3, render_seconds=12.0, size_bytes=3_000_000)
    story.at(15.0).add(
        ev.VitalsSampled(
            workers=(
                ev.WorkerVitals(
                    worker="w2",
                    cpu_share=0.42,
                    memory_bytes=312_000_000,
                    log_line="14:00:01 part 3: rendered",
                    log_age_seconds=3.0,
                ),
            )
        )
    )
    model = Model("live")
    for record in story.records:
        model.fold(record)
    shown = facts(model, "w2", 17.0)
    assert shown["profile"] == (
        "at most 12 fps, 2 s a claim, memory 800.0 MB at most, link 2 MiB/s, 0.05 s a block"
    )
    assert shown["uses"] == "42% of a core, memory 312.0 MB (at most 312.0 MB)"
    assert shown["last log"].endswith("ago: 14:00:01 part 3: rendered") and "5" in shown["last log"]
    assert shown["share"] == ("33.3 % of all credit; by its speed, 25.0 % is fair")
    assert shown["output"] == "9.0 MB so far, about 12.0 MB in the end"
    assert "uses" not in facts(model, "w1", 17.0), "nothing is known of it"
    story.add(ev.WorkerThrottled(worker="w2", fps_cap=None))
    model.fold(story.records[-1])
    assert facts(model, "w2", 17.0)["profile"].startswith("no limit, 2 s a claim")


def test_an_added_worker_has_the_profile_it_was_added_with() -> None:
    story = Story()
    story.add(ev.WorkerAdded(worker="w9", profile='{"name":"w9","memory_bytes":500000000}'))
    story.join("w9")
    model = Model("live")
    for record in story.records:
        model.fold(record)
    assert facts(model, "w9", 1.0)["profile"] == "no limit, memory 500.0 MB at most"


def test_vitals_are_no_part_of_what_two_models_of_a_log_share() -> None:
    """They are not journalled, so a replay has none."""
    one, two = Model("live"), Model("live")
    one.fold(ev.Record(-1, 1.0, ev.VitalsSampled(workers=(ev.WorkerVitals(worker="w1"),))))
    assert one.digest() == two.digest()


@on_loop
async def test_what_is_too_long_for_the_workers_box_ends_in_an_ellipsis() -> None:
    """A sentence cut without a sign may say something else."""
    story = Story(4800, 48)
    story.join("w1")
    story.park("w1", "the word is long, " * 9)
    async with ConsoleApp(Player(story.records), refresh_hz=1e-6, exit_when_done=False).run_test(
        size=(80, 24)
    ) as pilot:
        app = await ready(pilot)
        await pilot.press("enter")
        await wait_for(pilot, lambda: "the word is" in screen_text(app), "the reason")
        (line,) = (line for line in screen_text(app).splitlines() if " why " in line)
        assert line.rstrip("│ ").endswith("…")


@pytest.mark.parametrize("typed", ["1_2", "١٢", "0", "nan", "1e9", "12,١٢"])
def test_a_speed_is_read_as_in_a_fleet(typed: str) -> None:
    """Here Python's own reading of numbers was taken for good enough."""
    with pytest.raises(UsageError, match="is no speed: give frames per second"):
        parse_workers(typed)
