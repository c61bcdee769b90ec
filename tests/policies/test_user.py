"""A user's own policy: found, made, run; and what is said when it is broken."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from farm.errors import ExitCode, UsageError
from farm.policies.registry import parse_policy
from farm.policies.user import PolicyError
from tests.policies.handing import ask, measured, sizes

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "policies" / "by_time.py"

GOOD = """
from __future__ import annotations
from dataclasses import dataclass
from farm.policies.base import Ask, Size

@dataclass(frozen=True)
class Mine:
    frames: int = 7
    share: float | None = None
    loud: bool = False
    label: str = "mine"

    def __post_init__(self) -> None:
        if self.frames == 13:
            raise ValueError("13 brings bad luck")

    @property
    def name(self) -> str:
        return f"{self.label},{self.frames}"

    def size(self, ask: Ask) -> Size:
        return Size(self.frames, "as told")

class Plain:
    name = "plain"

    def size(self, ask):
        return 5

NOT_A_CLASS = 3
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def write(folder: Path, text: str) -> Path:
    path = folder / "broken.py"
    path.write_text(text)
    return path


# --- what works ------------------------------------------------------------------------------------------


def test_a_class_in_a_file_is_a_policy(mine: Path) -> None:
    policy = parse_policy(f"{mine}:Mine")
    assert policy.name == "mine,7"
    assert policy.size(ask(100)) == (7, "as told")
    assert sizes(policy, 16, 4) == [7, 7, 2]


def test_its_fields_are_its_parameters(mine: Path) -> None:
    assert parse_policy(f"{mine}:Mine,9").name == "mine,9"
    assert parse_policy(f" {mine}:Mine , label=hers , frames=8,loud=true,share=0.5").name == "hers,8"


def test_a_plain_class_and_a_plain_number_will_do(mine: Path) -> None:
    policy = parse_policy(f"{mine}:Plain")
    assert policy.size(ask(100)) == (5, "plain")


def test_a_path_may_hold_commas_and_colons(tmp_path: Path) -> None:
    folder = tmp_path / "a,b:c"
    folder.mkdir()
    (folder / "mine.py").write_text(GOOD)
    assert parse_policy(f"{folder}/mine.py:Mine,9").name == "mine,9"


def test_a_changed_file_is_read_anew_and_nothing_is_left_beside_it(mine: Path) -> None:
    parse_policy(f"{mine}:Mine")
    mine.write_text(GOOD.replace("frames: int = 7", "frames: int = 6"))
    assert parse_policy(f"{mine}:Mine").name == "mine,6"
    assert [path.name for path in mine.parent.iterdir()] == ["mine.py"]


def test_the_sample_gives_everybody_the_same_time() -> None:
    policy = parse_policy(f"{SAMPLE}:ByTime,15")
    assert policy.name == "by-time,15,24"
    assert policy.size(ask(4800)).frames == 24
    speeds = measured([30, 12])
    assert policy.size(ask(4800, speeds=speeds)).frames == 450
    assert policy.size(ask(4800, worker="w2", speeds=speeds)).frames == 180
    assert policy.size(ask(400, speeds=speeds)) == (100, "an even share of 400 open frames")
    with pytest.raises(UsageError, match=r"seconds must be a number of seconds from 0\.1 to 3600, not '0'"):
        parse_policy(f"{SAMPLE}:ByTime,0")


def test_an_installed_package_can_offer_one(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(mine.parent))
    mine.rename(mine.with_name("their_policies.py"))
    offer(monkeypatch, "theirs", "their_policies:Mine")
    try:
        assert parse_policy("theirs,frames=9").name == "mine,9"
        with pytest.raises(
            UsageError, match=r"no policy 'their' .did you mean 'theirs'.*known: fair.*, theirs"
        ):
            parse_policy("their")
        with pytest.raises(PolicyError, match=r"13 brings bad luck"):
            parse_policy("theirs,13")
    finally:
        sys.modules.pop("their_policies", None)


def test_an_entry_point_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "gone", "no_such_module_anywhere:Policy")
    with pytest.raises(PolicyError) as raised:
        parse_policy("gone")
    assert str(raised.value) == (
        "--schedule gone: no_such_module_anywhere:Policy: ModuleNotFoundError: "
        "No module named 'no_such_module_anywhere'"
    )


def offer(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    point = importlib.metadata.EntryPoint(name, value, "uneven.policies")
    everything = importlib.metadata.EntryPoints([point])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **chosen: everything.select(**chosen))


# --- what is broken --------------------------------------------------------------------------------------

CLASS = "class Mine:\n    name = 'mine'\n    def size(self, ask):\n        "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class Mine:\n  name = \n", "SyntaxError in {file}, line 2: invalid syntax"),
        (
            "import nothing_of_the_kind\n",
            "ModuleNotFoundError in {file}, line 1: No module named 'nothing_of",
        ),
        ("x = 1\ny = x / 0\n", "ZeroDivisionError in {file}, line 2: division by zero"),
        ("import sys\n\nsys.exit(3)\n", "SystemExit in {file}, line 3: 3"),
        ("\0", "SyntaxError in {file}"),
        ("class Miner: pass\n", "{file} has no class 'Mine' (did you mean 'Miner'?)"),
        ("Mine = 3\n", "Mine is a int; a policy is a class"),
        ("def Mine(): pass\n", "Mine is a function; a policy is a class"),
        ("class Mine:\n    name = 'x'\n", "the class Mine in {file} has no size"),
        ("class Mine:\n    def size(self, ask): return 1\n", "the class Mine in {file}, line 2 has no name"),
        ("class Mine:\n    name = 3\n    def size(self, ask): return 1\n", "its name must be a text, not 3"),
        (
            "class Mine:\n def size(self, ask): return 1\n @property\n def name(self): return self.x\n",
            "AttributeError in {file}, line 4: 'Mine' object has no attribute 'x'",
        ),
        (
            "class Mine:\n    name = 'x'\n    def size(self): return 1\n",
            "TypeError in {file}, line 3: too many positional arguments",
        ),
        (
            "class Mine:\n name = 'x'\n def __init__(self, n): pass\n def size(self, ask): return 1\n",
            "TypeError in {file}, line 3: Mine.__init__() missing 1 required positional argument: 'n'",
        ),
        (
            CLASS + "return ask.frames\n",
            "AttributeError in {file}, line 4: 'Ask' object has no attribute 'frames'",
        ),
        (
            CLASS + "return 0\n",
            "size() in {file}, line 3 answered 0 with 1000 frames open; it must be a number",
        ),
        (CLASS + "return None\n", "answered None"),
        (CLASS + "return -3\n", "answered -3"),
        (CLASS + "return float('nan')\n", "answered nan"),
        (CLASS + "return float('inf')\n", "answered inf"),
        (CLASS + "return '12'\n", "answered '12'"),
        (CLASS + "return True\n", "answered True"),
        (CLASS + "return (None, 'why')\n", "answered (None, 'why')"),
        (CLASS + "return self.size(ask)\n", "RecursionError in {file}, line 4"),
        (CLASS + "raise KeyError\n", "KeyError in {file}, line 4: no message"),
        (CLASS + "raise ValueError('a\\n  b')\n", "ValueError in {file}, line 4: a b"),
    ],
)
def test_a_broken_policy_is_reported_by_name_and_line(tmp_path: Path, text: str, says: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(PolicyError) as raised:
        parse_policy(f"{file}:Mine")
    message = str(raised.value)
    assert message.startswith(f"--schedule {file}:Mine: ") and says.format(file=file) in message
    assert "\n" not in message
    assert raised.value.exit_code == ExitCode.USAGE


def test_a_policy_that_breaks_in_mid_run_is_reported_the_same_way(tmp_path: Path) -> None:
    file = write(
        tmp_path, CLASS + "return {500: lambda: 1 // 0, 400: lambda: -1}.get(ask.open_frames, lambda: 1)()\n"
    )
    policy = parse_policy(f"{file}:Mine")
    assert policy.size(ask(600)).frames == 1
    with pytest.raises(PolicyError, match=r"ZeroDivisionError in .*broken\.py, line 4: integer division"):
        policy.size(ask(500))
    with pytest.raises(PolicyError, match=r"line 3 answered -1 with 400 frames open"):
        policy.size(ask(400))


def test_the_line_is_the_users_even_if_a_library_raised(tmp_path: Path) -> None:
    file = write(tmp_path, "import json\n" + CLASS + "return json.loads('{')\n")
    with pytest.raises(PolicyError, match=r"JSONDecodeError in .*broken\.py, line 5"):
        parse_policy(f"{file}:Mine")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("frames=0", "frames must be a whole number above 0, not '0'"),
        ("frames=x", "not 'x'"),
        ("share=nan", "share must be a number above 0, not 'nan'"),
        ("loud=yes", "loud must be true or false, not 'yes'"),
        ("farmes=3", "Mine has no parameter 'farmes' (did you mean 'frames'?); it takes frames, share, loud"),
        ("1,2,true,x,5", "'5' is one too many"),
        ("13", "ValueError in {file}, line 15: 13 brings bad luck"),
    ],
)
def test_wrong_parameters_are_one_sentence(mine: Path, given: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_policy(f"{mine}:Mine,{given}")
    assert says.format(file=mine) in str(raised.value)


def test_a_parameter_without_a_default_is_asked_for(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    frames: int\n    name = 'x'\n"
    file = write(tmp_path, text + "    def size(self, ask): return self.frames\n")
    assert parse_policy(f"{file}:Mine,3").size(ask(9)).frames == 3
    with pytest.raises(UsageError, match="Mine needs frames; it takes frames"):
        parse_policy(f"{file}:Mine")


def test_a_parameter_of_another_type_cannot_be_given(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    sizes: tuple = (1, 2)\n"
    file = write(tmp_path, text + "    name = 'x'\n    def size(self, ask): return self.sizes[0]\n")
    assert parse_policy(f"{file}:Mine").size(ask(9)).frames == 1
    with pytest.raises(
        UsageError, match=r"sizes is declared as .*; a parameter is an int, float, bool or str"
    ):
        parse_policy(f"{file}:Mine,3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{folder}/none.py:Mine", "can't read {folder}/none.py: No such file or directory"),
        ("{folder}/a.py", "say which class of {folder}/a.py is the policy, as in {folder}/a.py:Name"),
        ("{folder}/a.py:", "say which class"),
        ("{folder}/a.py,12", "say which class"),
        ("{folder}/d.py:Mine", "can't read {folder}/d.py: Is a directory"),
        ("\0.py:Mine", "is not a path"),
    ],
)
def test_a_file_that_is_not_there(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "d.py").mkdir()
    with pytest.raises(UsageError) as raised:
        parse_policy(text.format(folder=tmp_path))
    assert says.format(folder=tmp_path) in str(raised.value)
