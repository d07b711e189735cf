# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
"""Emulated state caches against caches written in numpy from docs/plan-keys.md, bit for bit: format, scale, rounding, residual and
period, and the recurrence around them."""

import math
import re

import deltaproof
import numpy as np
import pytest

F = np.float32

PLAN = """
name = "cached"
ops = "delta_rule"
path = "recurrent"
dtypes = "fp32"
[l2norm]
compute = "fp32"
store = "none"
[beta]
format = "given"
[A]
order = "sequential"
[state]
accumulate = "fp32"
store = "fp32"
between_tokens = %s
between_calls = %s
[v_new]
store = "fp32"
update_operand = "none"
[o]
operand = "fp32"
accumulate = "fp32"
store = "fp32"
"""

# Mantissa bits, smallest exponent, largest value, exponent of the largest power of two.
ELEMENTS = {
    "bf16": (7, -126, F(3.3895313892515355e38), 127),
    "fp16": (10, -14, F(65504), 15),
    "e4m3": (3, -6, F(448), 8),
    "e5m2": (2, -14, F(57344), 15),
    "e2m1": (1, 0, F(6), 2),
    "int8": (None, 0, F(127), 6),
    "int4": (None, 0, F(7), 2),
}


def grid(x, element, uniform=None):
    """x rounded to an element: to nearest even, or where `uniform` says away from zero; saturating."""
    mantissa, emin, largest, _ = ELEMENTS[element]
    size = np.abs(x)
    if mantissa is None:
        step = np.ones_like(size)
    else:
        exponent = np.frexp(np.where(size > 0, size, F(1)))[1] - 1
        step = np.ldexp(F(1), np.maximum(exponent, emin) - mantissa).astype(F)
    steps = (size / step).astype(F)
    if uniform is None:
        rounded = np.rint(steps)  # halves to even
    else:
        below = np.floor(steps)
        rounded = below + (uniform < steps - below)
    return np.copysign(np.minimum(rounded.astype(F) * step, largest), x).astype(F)


def round_scale(s, kind):
    return s if kind == "fp32" else grid(s, kind)


def groups(cache, K, V):
    """For each entry the number of its group."""
    layout = cache["scale"]
    rows, cols = {"tensor": (K, V), "row": (1, V), "column": (K, 1)}.get(layout, (None, None))
    if rows is None:
        numbers = [int(n) for n in re.findall(r"\d+", layout)]
        rows, cols = numbers if layout.startswith("tile") else (1, numbers[0])
    i, j = np.arange(K)[:, None] // rows, np.arange(V)[None, :] // cols
    return i * (V // cols + 1) + j


FIXED = {
    "mxfp8": dict(format="e4m3", scale="block:32", scale_format="e8m0"),
    "mxfp8-e5m2": dict(format="e5m2", scale="block:32", scale_format="e8m0"),
    "nvfp4": dict(format="e2m1", scale="block:16", scale_format="e4m3", tensor=True),
}


def scales(x, cache):
    largest, power = ELEMENTS[cache["format"]][2:]
    group = groups(cache, *x.shape)
    amax = np.zeros(group.max() + 1, F)
    np.maximum.at(amax, group, np.abs(x))
    if cache["scale_format"] == "e8m0":
        exponent = np.floor(np.log2(np.where(amax > 0, amax, 1).astype(np.float64))).astype(int) - power
        s = np.where(amax > 0, np.ldexp(1.0, np.clip(exponent, -127, 127)), 0).astype(F)
    else:
        s = (amax / largest).astype(F)
        tensor = (np.abs(x).max() / F(largest * F(448))).astype(F) if cache.get("tensor") else None
        if tensor is not None and tensor > 0:
            s = (s / tensor).astype(F)
        s = round_scale(s, cache["scale_format"])
        if tensor is not None:
            s = (s * tensor).astype(F)
    return s[group]


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011): four 32-bit words of a counter of four and a key of two."""
    mask = np.uint64(0xFFFFFFFF)
    c, (k0, k1) = [np.asarray(x, np.uint64) for x in counter], key
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & mask, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def philox_words(seed, stream, first, count):
    """Words first, first + 1, ... of a stream: four a block, counter (block, stream), key seed."""
    index = np.arange(first, first + count, dtype=np.uint64)
    block, mask = index // np.uint64(4), np.uint64(0xFFFFFFFF)
    halves = [block & mask, block >> np.uint64(32), np.full_like(block, stream & 0xFFFFFFFF), np.full_like(block, stream >> 32)]
    return np.choose((index % np.uint64(4)).astype(int), philox(halves, (seed & 0xFFFFFFFF, seed >> 32)))


class Cache:
    """One state on its way through a cache; `stream` is its head."""

    def __init__(self, words, stream):
        self.rounding, self.every, self.seed, self.stream = words["rounding"], words.get("every", 1), words.get("seed"), stream
        self.kept_in = words.get("residual")
        self.cache = {**words, **FIXED.get(words["format"], {})}
        self.residual, self.stores = F(0), 0

    def __call__(self, x):
        wanted = (x + self.residual).astype(F) if self.rounding == "error-feedback" else x
        uniform = None
        if self.rounding == "stochastic":
            words = philox_words(self.seed, self.stream, self.stores * x.size, x.size)
            uniform = ((words >> np.uint64(8)).astype(F) * F(2.0**-24)).reshape(x.shape)
        self.stores += 1
        element = self.cache["format"]
        if self.cache.get("scale", "none") == "none":
            out = grid(wanted, element, uniform)
        else:
            s = scales(wanted, self.cache)
            with np.errstate(divide="ignore", invalid="ignore"):
                code = np.where(s > 0, grid((wanted / s).astype(F), element, uniform), np.copysign(F(0), wanted))
            if element.startswith("int"):
                code = code + F(0)
            out = (code * s).astype(F)
        if self.rounding == "error-feedback":
            rest = (wanted - out).astype(F)
            self.residual = rest if self.kept_in == "fp32" else grid(rest, self.kept_in)
        return out


def toml(words):
    return "{" + ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in words.items()) + "}"


def emulated(tmp_path, p, tokens='"none"', calls='"none"'):
    plan = tmp_path / "cached.toml"
    plan.write_text(PLAN % (tokens, calls))
    return deltaproof.emulate(p, plan, to="numpy")


def all_caches():
    layouts = ("tensor", "row", "column", "tile:4x8", "block:16", "block:7")
    roundings = (
        dict(rounding="nearest"),
        dict(rounding="stochastic", seed=2**40 + 5),
        dict(rounding="error-feedback", residual="bf16"),
        dict(rounding="error-feedback", residual="fp32"),
    )
    scaled = [
        dict(format=f, scale=s, scale_format=sf)
        for f in ("e4m3", "e5m2", "int8", "int4", "fp16")
        for s, sf in zip(layouts, ("fp32", "bf16", "fp16", "e8m0", "e4m3", "fp32"))
    ]
    plain = [dict(format=f, scale="none") for f in ("bf16", "fp16", "e4m3", "e5m2")]
    fixed = [dict(format=f) for f in FIXED]
    return [{**c, **roundings[i % 4], "every": 1 + i % 3} for i, c in enumerate(scaled + plain + fixed)]


def problem(tokens, heads, K, V, seed, scale=1.0):
    random = np.random.default_rng(seed)
    k = random.standard_normal((1, tokens, heads, K)).astype(F)
    k /= np.linalg.norm(k, axis=-1, keepdims=True).astype(F)
    spread = np.exp2(random.integers(-6, 7, (1, heads, K, 1))).astype(F)
    return deltaproof.Problem(
        random.standard_normal((1, tokens, heads, K)).astype(F),
        k,
        random.standard_normal((1, tokens, heads, V)).astype(F),
        random.uniform(0, 1, (1, tokens, heads)).astype(F),
        op="delta_rule",
        scale=scale,
        initial_state=random.standard_normal((1, heads, K, V)).astype(F) * spread,
    )


def recurrence(p, words, calls):
    """The delta rule in fp32, every sum in turn, the state stored after o is read."""
    q, k, v, beta = (np.asarray(x) for x in (p.q, p.k, p.v, p.beta))
    tokens, heads, K = q.shape[1:]
    o, final = np.zeros_like(v), np.array(p.initial_state, F)
    for h in range(heads):
        state, cache = final[0, h], words and Cache(words, h)
        for t in range(tokens):
            read = np.zeros(v.shape[-1], F)
            for i in range(K):
                read = read + k[0, t, h, i] * state[i]
            change = beta[0, t, h] * (v[0, t, h] - read)
            state = state + k[0, t, h][:, None] * change[None, :]
            out = np.zeros(v.shape[-1], F)
            for i in range(K):
                out = out + (q[0, t, h, i] * F(p.scale)) * state[i]
            o[0, t, h] = out
            if cache and (t + 1) % cache.every == 0:
                state = cache(state)
        final[0, h] = Cache(calls, h)(state) if calls else state
    return o, final


def same_bits(a, b):
    return np.array_equal(np.asarray(a, F).view(np.uint32), np.asarray(b, F).view(np.uint32))


@pytest.mark.parametrize("words", all_caches(), ids=toml)
def test_a_recurrence_with_a_cached_state_is_numpy_s(words, tmp_path):
    p = problem(tokens=7, heads=3, K=11, V=37, seed=len(toml(words)))
    got = emulated(tmp_path, p, tokens=toml(words))
    o, final = recurrence(p, words, None)
    assert same_bits(got.o, o) and same_bits(got.final_state, final)
    uncached = emulated(tmp_path, p)
    assert not same_bits(got.final_state, uncached.final_state)


def test_a_thousand_random_states_between_calls_are_numpy_s(tmp_path):
    compared = 0
    caches = [{k: v for k, v in c.items() if k != "every"} for c in all_caches()]
    each = math.ceil(1000 / len(caches))
    for n, words in enumerate(caches):
        p = problem(tokens=1, heads=each, K=16, V=48, seed=100 + n)
        o, final = recurrence(p, None, words)
        got = emulated(tmp_path, p, calls=toml(words))
        assert same_bits(got.o, o), words
        assert same_bits(got.final_state, final), words
        compared += each
    assert compared >= 1000


@pytest.mark.parametrize(
    "counter, key, words",
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_the_philox_of_this_file_gives_random123_s_known_answers(counter, key, words):
    assert [int(w) for w in philox(counter, key)] == words


def test_chunks_store_the_state_after_each_chunk(tmp_path):
    """Calls of one chunk each, the state carried by hand through numpy's cache, equal one call with a cache between chunks."""
    words = dict(format="int8", scale="row", scale_format="fp32", rounding="error-feedback", residual="bf16")
    p = problem(tokens=12, heads=2, K=8, V=6, seed=5)
    plan = tmp_path / "chunks.toml"
    text = deltaproof_plan("fp32")
    plan.write_text(text.replace('between_tokens = "none"', "between_tokens = " + toml(words)))
    whole = deltaproof.emulate(p, plan, path="chunk", chunk=4, to="numpy")
    state, caches = np.asarray(p.initial_state), [Cache(words, h) for h in range(2)]
    for first in range(0, 12, 4):
        part = deltaproof.Problem(
            *(np.ascontiguousarray(np.asarray(x)[:, first : first + 4]) for x in (p.q, p.k, p.v, p.beta)),
            op="delta_rule",
            scale=1.0,
            initial_state=state,
        )
        result = deltaproof.emulate(part, "fp32", path="chunk", chunk=4, to="numpy")
        assert same_bits(np.asarray(whole.o)[:, first : first + 4], result.o)
        state = np.stack([caches[h](np.asarray(result.final_state)[0, h]) for h in range(2)])[None]
    assert same_bits(whole.final_state, state)


def deltaproof_plan(name):
    import os
    import subprocess

    program = os.environ.get("DELTAPROOF_PROGRAM")
    if not program:
        pytest.skip("DELTAPROOF_PROGRAM does not name the program")
    return subprocess.run([program, "explain", name], capture_output=True, text=True, check=True).stdout


def test_elements_are_those_of_ml_dtypes():
    """A second opinion, where it is installed: every finite fp16 and bf16 number below an element's largest value."""
    ml = pytest.importorskip("ml_dtypes")
    every = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
    numbers = np.concatenate([every.view(np.float16).astype(F), every.view(ml.bfloat16).astype(F)])
    for element, theirs in (("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("e2m1", "float4_e2m1fn")):
        x = numbers[np.abs(numbers) <= ELEMENTS[element][2]]
        assert len(x) > 40000
        assert same_bits(grid(x, element), x.astype(getattr(ml, theirs)).astype(F)), element
