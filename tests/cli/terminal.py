# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""terminal.py PROGRAM ROOT: what a person sees. On a terminal of 80 columns (a pseudo-terminal) lines fit and the words that decide are
coloured; in a pipe the text is plain. Progress moves to the end, off a terminal it is a line now and then, and who stopped the
work is named."""

import fcntl
import functools
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
recordings = root / "tests/recordings"
PAIR = [str(recordings / "beta_near_two.problem.safetensors"), str(recordings / "beta_near_two.chunk.safetensors")]
REFUTED = [str(recordings / "steep_gates.problem.safetensors"), str(recordings / "steep_gates.chunk.safetensors")]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """The program on a terminal: what it wrote, and when."""

    def __init__(self, *words, columns=80, **environment):
        self.written, self.begun = [], time.monotonic()
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
            # The size is there before anything is written.
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.execve(program, [program, *words], {**clean, "TERM": "xterm", **environment})

    def read(self, seconds=240):
        """Until the program ends, or for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not select.select([self.end], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self.end, 65536)
            except OSError:  # Linux's word for the end
                data = b""
            if not data:
                self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                os.close(self.end)
                return self
            self.written.append((time.monotonic() - self.begun, data.decode()))
        return self

    @property
    def text(self):
        return "".join(data for _, data in self.written).replace("\r\n", "\n")

    @property
    def lines(self):
        """What stays on the screen: what a later carriage return wipes is gone."""
        return [line.rpartition("\x1b[K")[2] for line in self.text.rstrip("\n").split("\n")]


def piped(*words, **environment):
    done = subprocess.run([program, *words], capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def words_of(text):
    return COLOUR.sub("", text).split()


def test_lines_fit_and_say_the_same():
    shown = Terminal("check", *PAIR).read()
    code, plain, _ = piped("check", *PAIR)
    assert shown.code == code == 0
    assert "\x1b" not in plain and max(map(len, plain.splitlines())) > 120, "output to a pipe is wrapped or coloured"
    for line in shown.lines:
        # A command is copied whole.
        assert len(COLOUR.sub("", line)) <= 80 or "again" in line, line
    assert words_of("\n".join(shown.lines)) == plain.split()
    again = [line for line in shown.lines if "again" in line]
    assert len(again) == 1 and again[0].endswith(" ".join(PAIR)), again
    # What goes on stands below its column.
    at = next(i for i, line in enumerate(shown.lines) if "false alarm" in line)
    assert shown.lines[at + 1].startswith(" " * 13) and shown.lines[at + 1][13] != " ", shown.lines[at + 1]
    narrow = Terminal("check", *PAIR, "--no-power", columns=50).read()
    assert all(len(COLOUR.sub("", line)) <= 50 or "again" in line for line in narrow.lines if "\x1b[K" not in line)


def test_key_words_are_coloured_unless_told_not_to():
    holds, refuted = Terminal("check", *PAIR, "--no-power").read(), Terminal("check", *REFUTED, "--no-power").read()
    assert "\x1b[1;32mholds\x1b[0m" in holds.text, holds.text
    assert "\x1b[1;31mrefuted\x1b[0m" in refuted.text, refuted.text
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = Terminal("check", *PAIR, "--no-power", **environment).read()
        assert not COLOUR.search(plain.text), plain.text
        assert plain.lines[0].startswith("verdict      holds"), plain.lines
    assert COLOUR.search(Terminal("check", *PAIR, "--no-power", NO_COLOR="").read().text), 'NO_COLOR="" turned colour off'
    code, _, refusal = piped("check", *PAIR, "--no-color")
    assert code == 2 and "no option --no-color" in refusal


def test_what_is_to_be_copied_stays_whole():
    shown = Terminal("explain", "fla-chunk-gdn").read()
    assert "\n".join(shown.lines) == piped("explain", "fla-chunk-gdn")[1].rstrip("\n")
    help_lines = Terminal("check", "--help").read().lines
    assert max(map(len, help_lines)) <= 80 and any("--false-alarm" in line for line in help_lines)
    wrong = Terminal("gen", "--regime", "typcal", "-o", "x").read()
    assert wrong.code == 2 and max(map(len, wrong.lines)) <= 80, wrong.lines


@functools.cache
def long_problem(folder):
    problem, result = f"{folder}/long.problem.safetensors", f"{folder}/long.result.safetensors"
    made = ["--op", "gated_delta_rule", "--T", "4200", "--K", "64", "--V", "64", "--H", "2", "--HV", "2", "--dtype", "bf16"]
    assert piped("gen", *made, "-o", problem)[0] == 0
    assert piped("emulate", problem, "--plan", "fla-chunk-gdn", "-o", result)[0] == 0
    return [problem, result]


def test_progress_moves_to_the_end(folder):
    shown = Terminal("check", *long_problem(folder)).read()
    assert shown.code == 0, shown.text
    frames = [(when, frame) for when, data in shown.written for frame in re.findall(r"\r\x1b\[K([^\r\x1b]+)", data)]
    assert len(frames) >= 8, frames
    stages = {re.match(r"[a-z ]*[a-z]", frame).group(0) for _, frame in frames}
    assert {"emulation", "planted faults"} <= stages and len(stages) >= 4, stages
    assert not any("100 %" in frame for _, frame in frames), f"progress stood at 100 %: {frames}"
    # A frame every quarter of a second, whatever the work reports; a busy machine is given two seconds.
    times = [when for when, _ in frames]
    assert max(b - a for a, b in zip(times, times[1:])) < 2, times
    assert all(len(frame) < 80 for _, frame in frames)
    assert shown.lines[0].replace("\x1b[1m", "").startswith("verdict"), f"the progress line is still there before the verdict: {shown.lines[0]}"


def test_off_a_terminal_a_line_now_and_then(folder):
    pair = long_problem(folder)
    code, out, err = piped("check", *pair, "--max-seconds", "1.5", DELTAPROOF_PROGRESS_SECONDS="0.3")
    lines = err.splitlines()
    done = [line for line in lines if "time is up" not in line]
    assert code in (0, 3) and len(done) >= 2 and all(re.match(r"deltaproof: [a-z ]+  (\d+ %  )?(\d+ min )?\d+ s", line) for line in done), err
    assert out.startswith("verdict") and "\x1b" not in err
    code, _, err = piped("check", *pair, "--max-seconds", "1.5")
    assert code in (0, 3) and all("time is up" in line for line in err.splitlines()), f"a progress line was printed within 30 s: {err}"
    assert piped("check", *PAIR, "--no-power", DELTAPROOF_PROGRESS_SECONDS="0")[2] == ""


def test_who_stopped_it_is_named(folder):
    pair = long_problem(folder)
    code, out, _ = piped("check", *pair, "--max-seconds", "0.5")
    assert code == 3 and "undecided: --max-seconds 0.5 ran out: " in out, out
    code, out, _ = piped("report", *pair, "-o", f"{folder}/page", "--max-seconds", "0.5")
    assert code == 3 and "--max-seconds 0.5 ran out; nothing was written" in out, out
    ran = subprocess.Popen([program, "check", *pair], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate(timeout=120)
    assert ran.returncode == 130 and "deltaproof: interrupted" in err, err
    assert "time ran out" not in out and "max-seconds" not in out.partition("again")[0], out
    assert out.startswith("verdict      undecided: interrupted: "), out


def test_completion(folder):
    code, script, _ = piped("completion", "bash")
    assert code == 0
    pathlib.Path(folder, "own.toml").touch()

    def completed(*words):
        run = f'{script}\nCOMP_WORDS=({" ".join(words)!s}); COMP_CWORD={len(words) - 1}; _deltaproof; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return set(done.stdout.split())

    assert completed("deltaproof", "in") == {"inspect", "invariant", "inverse"}
    assert completed("deltaproof", "check", "--max-s") == {"--max-seconds"}
    assert completed("deltaproof", "gen", "--regime", "typ") == {"typical"}
    assert completed("deltaproof", "check", "--plan", "fla-chunk-g") == {"fla-chunk-gdn", "fla-chunk-gdn-tilelang", "fla-chunk-gdp"}
    assert "own.toml" in completed("deltaproof", "check", "--plan", "o")
    assert completed("deltaproof", "list", "re") == {"regimes"}
    assert "fla-chunk-gdn" in completed("deltaproof", "explain", "fla-chunk")
    assert "own.toml" in completed("deltaproof", "check", "ow")
    # Every verb and long option of the help is there: the script is made from the same tables.
    for verb in re.findall(r"^  ([a-z]+) {3,}", piped("--help")[1].partition("Subcommands")[2], re.M):
        options = set(re.findall(r"^  (?:-[a-z],)?(--[a-z-]+)", piped(verb, "--help")[1], re.M))
        assert verb in completed("deltaproof", verb) and options <= completed("deltaproof", verb, "--"), verb
    assert piped("completion", "fish")[0] == 2


with tempfile.TemporaryDirectory() as place:
    for name, test in list(globals().items()):
        if name.startswith("test_") and (len(sys.argv) < 4 or sys.argv[3] in name):
            began = time.monotonic()
            test(*[place][: test.__code__.co_argcount])
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
