"""Fleet files: what they mean for a live run and for the simulator, and what is said of impossible ones."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import ExitCode, UsageError
from farm.fleet import LinkProfile, WorkerProfile
from farm.scenario.fleets import (
    load_fleet,
    load_sim_workers,
    parse_fleet_file,
    to_profiles,
    to_sim_workers,
)
from farm.simulation.world import SimWorker, check_world, world_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "fleets"
W = "[[worker]]\n"


def profile(name: str, fps: float | None, overhead: float = 0.0) -> WorkerProfile:
    return WorkerProfile(name=name, fps_cap=fps, overhead_seconds=overhead)


# --- what they mean --------------------------------------------------------------------------------------


def test_a_file_names_workers_with_defaults_for_all() -> None:
    slow = f'{W}name = "slow"\ncount = 2\nfps = 2.5\noverhead = 4\n'
    text = f'overhead = 1.5\n{W}fps = 30\n{slow}{W}fps = "max"\n{W}'
    assert to_profiles(parse_fleet_file(text, "f.toml"), "f.toml", 9.0) == (
        profile("w1", 30.0, 1.5),
        profile("slow-1", 2.5, 4.0),
        profile("slow-2", 2.5, 4.0),
        profile("w4", None, 1.5),
        profile("w5", None, 1.5),
    )


def test_the_overhead_of_the_command_line_is_for_files_that_say_nothing(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(f"{W}fps = 30\n{W}fps = 12\noverhead = 0\n")
    assert load_fleet(str(file), 2.0) == (profile("w1", 30.0, 2.0), profile("w2", 12.0, 0.0))


def test_the_shorthand_stays() -> None:
    assert load_fleet("30,max,2.5", 2.0) == (
        profile("w1", 30.0, 2.0),
        profile("w2", None, 2.0),
        profile("w3", 2.5, 2.0),
    )
    assert load_sim_workers("30,2", 2.0) == (
        SimWorker(name="w1", fps=30.0, overhead_seconds=2.0),
        SimWorker(name="w2", fps=2.0, overhead_seconds=2.0),
    )


def test_the_simulator_is_told_all_that_happens() -> None:
    text = f"""{W}
    fps = 10
    arrives = 5
    dies = 90
    silent = [[20, 30], [40, 50.5]]
    cut = [[60, 70]]
    throttle = [[10, 0.5], [80, 1.0]]
    noise = 0.5
    load = 0.25
    memory_gb = 7.5
    cores = 2
    """
    workers = to_sim_workers(parse_fleet_file(text, "f.toml"), "f.toml", 2.0)
    assert workers == (
        SimWorker(
            name="w1",
            fps=10.0,
            overhead_seconds=2.0,
            arrives_at_seconds=5.0,
            dies_at_seconds=90.0,
            silences=((20.0, 30.0), (40.0, 50.5)),
            partitions=((60.0, 70.0),),
            throttles=((10.0, 0.5), (80.0, 1.0)),
            frame_noise=0.5,
            load=0.25,
        ),
    )
    check_world(world_of(workers, 100))


def test_a_link_is_the_same_live_and_simulated() -> None:
    link = "link = { mib_per_second = 2, latency = 0.05, drop_rate = 0.01, block_mib = 0.5 }"
    fleet = parse_fleet_file(f"{W}fps = 3\n{link}\n{W}fps = 3\nlink = {{}}\n{W}fps = 3\n", "f.toml")
    slow = LinkProfile(mib_per_second=2.0, latency_seconds=0.05, drop_rate=0.01, block_bytes=1 << 19)
    links = [slow, LinkProfile(), None]
    assert [worker.link for worker in to_profiles(fleet, "f.toml")] == links
    workers = to_sim_workers(fleet, "f.toml")
    assert [worker.link for worker in workers] == links
    check_world(world_of(workers, 100))


def test_a_profile_with_a_link_goes_through_the_journal() -> None:
    """And one that was written before there were links is read."""
    profile = WorkerProfile(name="w1", link=LinkProfile(mib_per_second=2.0))
    assert msgspec.json.decode(msgspec.json.encode(profile), type=WorkerProfile) == profile
    before = b'{"name":"w1","fps_cap":3.0,"overhead_seconds":0.0}'
    assert msgspec.json.decode(before, type=WorkerProfile).link is None


@pytest.mark.parametrize(
    "field", ["arrives=1", "dies=9", "silent=[[1,2]]", "cut=[[1,2]]", "throttle=[[1,2]]"]
)
def test_what_only_happens_in_virtual_time_is_refused_live(field: str) -> None:
    fleet = parse_fleet_file(f"{W}fps = 3\n{W}fps = 3\n{field}\n", "f.toml")
    assert len(to_sim_workers(fleet, "f.toml")) == 2
    name = field.split("=")[0]
    with pytest.raises(UsageError, match=rf"^f\.toml: worker\[1\]\.{name}: happens in virtual time only"):
        to_profiles(fleet, "f.toml")


def test_threads_must_be_the_jobs_since_the_bytes_depend_on_them() -> None:
    fleet = parse_fleet_file(f"{W}threads = 2\n", "f.toml")
    assert to_profiles(fleet, "f.toml", threads=2) == to_profiles(fleet, "f.toml") == (profile("w1", None),)
    with pytest.raises(UsageError, match=r"worker\[0\]\.threads: 2 differs from the job's 1; .*other bytes"):
        to_profiles(fleet, "f.toml", threads=1)


def test_a_simulated_worker_needs_a_speed() -> None:
    with pytest.raises(UsageError, match=r"^f\.toml: worker\[0\]\.fps: a simulated worker needs a speed"):
        to_sim_workers(parse_fleet_file(f'{W}fps = "max"', "f.toml"), "f.toml")
    with pytest.raises(UsageError, match="worker 2 is 'max'; a simulated one needs a speed"):
        load_sim_workers("30,max")


@pytest.mark.parametrize(
    ("file", "speeds"),
    [
        ("article-a.toml", [30, 30, 12, 2]),
        ("article-b.toml", [24, 24, 24, 1]),
        ("strangers.toml", [2.1, 4.3, 3.8, 5.1, 6.2]),
        ("household.toml", [48, 14, 3]),
        ("links.toml", [30, 24, 12]),
    ],
)
def test_the_samples(file: str, speeds: list[float]) -> None:
    path = str(SAMPLES / file)
    assert [worker.fps_cap for worker in load_fleet(path, threads=1)] == speeds
    workers = load_sim_workers(path)
    check_world(world_of(workers, 100))
    if file.startswith("article"):
        assert {worker.overhead_seconds for worker in workers} == {2.0}


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "worker: a fleet has 1 to 10,000 workers, not 0"),
        ("worker = []", "worker: a fleet has 1 to 10,000 workers, not 0"),
        (f"{W}count = 6000\n{W}count = 6000", "worker: a fleet has 1 to 10,000 workers, not 12,000"),
        ("x = [", "not TOML: "),
        (f"{W}fps = 1\nfps = 2", "not TOML: "),
        ("wroker = 1", "wroker: unknown field (did you mean 'worker'?); known: about, overhead, worker"),
        (
            f"{W}fps = 2\n{W}fsp = 3",
            "worker[1].fsp: unknown field (did you mean 'fps'?); known: name, count,",
        ),
        (f'{W}"ö x" = 1', "worker[0].'ö x': unknown field; known: "),
        ("worker = 3", "worker: must be a list, not a whole number"),
        ("[worker]\nfps = 2", "worker: must be a list, not a table"),
        ("worker = [3]", "worker[0]: must be a table, not a whole number"),
        ("about = 1", "about: must be text, not a whole number"),
        ("overhead = -1", "overhead: give seconds from 0 to 10,000,000, not -1"),
        (f"{W}fps = 0", "worker[0].fps: give frames per second from 0.001 to 1,000,000, not 0"),
        (f"{W}{W}fps = -3", "worker[1].fps: give frames per second from 0.001 to 1,000,000, not -3"),
        (f"{W}fps = nan", "worker[0].fps: give frames per second from 0.001 to 1,000,000, not nan"),
        (f"{W}fps = inf", "worker[0].fps: give frames per second from 0.001 to 1,000,000, not inf"),
        (f'{W}fps = "fast"', "worker[0].fps: give frames per second or \"max\", not 'fast'"),
        (f"{W}fps = true", "worker[0].fps: must be a number or text, not true or false"),
        (f"{W}fps = [1]", "worker[0].fps: must be a number or text, not a list"),
        (f"{W}count = 0", "worker[0].count: give a number of workers from 1 to 10,000, not 0"),
        (f"{W}count = 1.5", "worker[0].count: must be a whole number, not a number"),
        (f'{W}name = ""', "worker[0].name: '' must be 1 to 32 letters, digits"),
        (f'{W}name = "a/b"', "worker[0].name: 'a/b' must be"),
        (f'{W}name = "a"\n{W}name = "a"', "worker[1].name: 'a' is worker[0]'s already"),
        (f'{W}name = "a"\ncount = 2\n{W}name = "a-1"', "worker[1].name: 'a-1' is worker[0]'s already"),
        (f'{W}name = "w2"\n{W}', "worker[1].name: 'w2' is worker[0]'s already"),
        (f"{W}threads = 0", "worker[0].threads: give a number of threads from 1 to 1,024, not 0"),
        (f"{W}memory_gb = 0", "worker[0].memory_gb: give GiB above 0"),
        (f"{W}memory_gb = nan", "worker[0].memory_gb: give GiB above 0"),
        (f"{W}cores = 0", "worker[0].cores: give a number of cores from 1"),
        (f"{W}arrives = -1", "worker[0].arrives: give seconds from 0"),
        (f"{W}dies = 0", "worker[0].dies: 0 s is not after it arrives, at 0 s"),
        (f"{W}arrives = 9\ndies = 5", "worker[0].dies: 5 s is not after it arrives, at 9 s"),
        (f"{W}silent = 3", "worker[0].silent: must be a list, not a whole number"),
        (f"{W}silent = [3]", "worker[0].silent[0]: must be a list, not a whole number"),
        (f"{W}silent = [[3]]", "worker[0].silent[0]: must be a list of 2, not of 1"),
        (f'{W}silent = [["a", 2]]', "worker[0].silent[0][0]: must be a number, not text"),
        (f"{W}silent = [[3, 2]]", "worker[0].silent[0][1]: give seconds above 3"),
        (f"{W}silent = [[3, 8], [7, 9]]", "worker[0].silent[1][0]: give seconds from 8 to"),
        (f"{W}cut = [[0, nan]]", "worker[0].cut[0][1]: give seconds above 0 and at most 10,000,000, not nan"),
        (f"{W}throttle = [[1, 0]]", "worker[0].throttle[0][1]: give a factor of its speed above 0"),
        (f"{W}throttle = [[2, 1], [1, 1]]", "worker[0].throttle[1][0]: give seconds from 2 to"),
        (f"{W}noise = -1", "worker[0].noise: give a sigma from 0 to 5, not -1"),
        (f"{W}load = 0.5", "worker[0].load: give a share of its speed from 0 to below 0.5, not 0.5"),
        (f"{W}load = nan", "worker[0].load: give a share"),
        (f"{W}link = 2", "worker[0].link: must be a table, not a whole number"),
        (
            f"{W}{W}link = {{ mib_per_second = 0 }}",
            "worker[1].link.mib_per_second: give MiB per second above 0 and at most 1,000,000, not 0",
        ),
        (f"{W}link = {{ latency = nan }}", "worker[0].link.latency: give seconds from 0 to 60, not nan"),
        (f"{W}link = {{ drop_rate = 1 }}", "worker[0].link.drop_rate: give a probability from 0 to 0.9"),
        (
            f"{W}link = {{ block_mib = 6 }}",
            "worker[0].link.block_mib: give MiB from 0.0009765625 to 5",
        ),
        (f"{W}link = {{ block_mib = 0 }}", "worker[0].link.block_mib: give MiB from"),
        (
            f"{W}link = {{ mib_per_secnd = 1 }}",
            "worker[0].link.mib_per_secnd: unknown field (did you mean 'mib_per_second'?); known: ",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_the_path_of_the_field(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_fleet_file(text, "my fleet.toml")
    message = str(raised.value)
    assert message.startswith(f"my fleet.toml: {says}") and "\n" not in message
    assert raised.value.exit_code == ExitCode.USAGE


@given(
    st.recursive(
        st.integers() | st.floats() | st.booleans() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(["name", "count", "fps", "overhead", "silent", "throttle", "link", "threads", "x y"]),
)
def test_whatever_stands_in_a_field_is_a_fleet_or_one_sentence(value: object, field: str) -> None:
    text = f'[[worker]]\n"{field}" = {toml(value)}\n'
    try:
        workers = to_sim_workers(parse_fleet_file(text + "", "f.toml"), "f.toml")
    except UsageError as error:
        assert str(error).startswith("f.toml: ") and "\n" not in str(error)
    else:
        check_world(world_of(workers, 10))


def toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return (
                '"'
                + "".join(f"\\U{ord(c):08x}" if not 0xD800 <= ord(c) < 0xE000 else "?" for c in value)
                + '"'
            )
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{toml(key)} = {toml(item)}' for key, item in value.items())}}}"
        case _:
            return str(value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.toml", None, "can't read it: No such file or directory"),
        ("bytes.toml", b"\xff\xfe", "it is not UTF-8 text (byte 0)"),
        ("deep.toml", b"a = " + b"[" * 5000, "not TOML: "),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        load_fleet(str(path))
    assert str(raised.value).startswith(f"{path}: {says}")


def test_a_folder_and_a_wrong_ending(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        load_fleet(str(tmp_path / "folder.toml"))
    with pytest.raises(UsageError, match=r"a fleet file's name ends in \.toml"):
        load_fleet("fleets/mine.tml")
    with pytest.raises(UsageError, match="worker 2 is '0'"):
        load_fleet("30,0")


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "f.TOML"
    path.write_bytes(b"\xef\xbb\xbf[[worker]]\nfps = 3\n")
    assert load_fleet(str(path)) == (profile("w1", 3.0),)


def test_a_live_run_has_fewer_workers_than_a_simulation() -> None:
    fleet = parse_fleet_file(f"{W}fps = 1\ncount = 600", "f.toml")
    assert len(to_sim_workers(fleet, "f.toml")) == 600
    with pytest.raises(UsageError, match="a live run has 1 to 512 workers, not 600"):
        to_profiles(fleet, "f.toml")
