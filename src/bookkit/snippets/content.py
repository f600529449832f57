"""A hash of what an object holds, so that a cell that changes it is noticed.

Imports no library that the chapter did not import itself.
"""

import dis
import gc
import hashlib
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
# What these hold is not theirs, or does not change.
FIXED = (
    types.ModuleType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    weakref.ref,
)
NO_ATTRIBUTES = {"__dict__", "__weakref__"}


class Content(NamedTuple):
    """What could be seen of an object."""

    hash: str
    seen_whole: bool  # False if a part of it cannot be looked at without using it up
    reads: frozenset[str]  # names of the page that functions in it read when they run


def content(value: Any, page: dict[str, Any] | None = None) -> Content:
    """A hash of everything that can be reached from the value.

    Args:
        value: any object.
        page: the names of the page, by which its functions are known.

    >>> rows = [1, {"a": 2.0}]
    >>> before = content(rows)
    >>> rows[1]["a"] = 3.0
    >>> content(rows) == before, content(iter(rows)).seen_whole
    (False, False)
    """
    walk = Walk(page)
    try:
        walk.add(value)
    except RecursionError:
        walk.seen_whole = False
    return Content(walk.digest.hexdigest(), walk.seen_whole, frozenset(walk.reads))


class Walk:
    """Goes through an object once, whatever points back at it."""

    def __init__(self, page: dict[str, Any] | None = None) -> None:
        self.page = page
        self.reads: set[str] = set()
        self.digest = hashlib.blake2b(digest_size=16)
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # alive until the end, so that no two objects share an id
        self.seen_whole = True

    def note(self, *words: Any) -> None:
        self.digest.update(repr(words).encode("utf-8", "backslashreplace"))

    def add(self, value: Any) -> None:
        """Take in one value, and what it holds."""
        if isinstance(value, PLAIN):
            self.note(type(value).__name__, value)
            return
        if id(value) in self.seen:
            self.note("again", self.seen[id(value)])
            return
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        self.note(type(value).__qualname__)
        if not self.add_of_a_library(value):
            self.add_parts(value)

    def add_of_a_library(self, value: Any) -> bool:
        """What tensors, arrays and generators hold; False for anything else."""
        torch, numpy, jax, random = (sys.modules.get(name) for name in ("torch", "numpy", "jax", "random"))
        if torch and isinstance(value, torch.Tensor):
            self.add_tensor(value, torch)
        elif torch and isinstance(value, torch.Generator):
            self.add(value.get_state())
        elif numpy and isinstance(value, numpy.ndarray | numpy.generic):
            self.add_array(numpy.asarray(value), numpy)
        elif numpy and isinstance(value, numpy.random.Generator):
            self.add(value.bit_generator)
        elif numpy and isinstance(value, numpy.random.BitGenerator):
            self.add_items([value.state, getattr(value.seed_seq, "state", None)])
        elif numpy and isinstance(value, numpy.random.RandomState):
            self.add(value.get_state())
        elif random and isinstance(value, random.Random):
            self.add(value.getstate())
        else:
            fixed_in_torch = torch and isinstance(value, torch.dtype | torch.device)
            fixed_in_numpy = numpy and isinstance(value, numpy.dtype | numpy.ufunc)
            return bool(fixed_in_torch or fixed_in_numpy or (jax and isinstance(value, jax.Array)))
        return True

    def add_tensor(self, value: Any, torch: types.ModuleType) -> None:
        self.note(str(value.dtype), tuple(value.shape), str(value.device), value.requires_grad)
        if value.is_leaf or value.retains_grad:
            self.add(value.grad)
        if value.layout is not torch.strided:
            self.seen_whole = False
        elif value.device.type == "cpu" and value.numel():
            plain = value.detach().resolve_conj().resolve_neg().contiguous()
            self.digest.update(plain.reshape(-1).view(torch.uint8).numpy())
        self.add(getattr(value, "__dict__", None))

    def add_array(self, value: Any, numpy: types.ModuleType) -> None:
        self.note(str(value.dtype), value.shape)
        if value.dtype.hasobject:
            self.add(value.tolist())
        else:
            self.digest.update(numpy.ascontiguousarray(value).tobytes())

    def add_parts(self, value: Any) -> None:
        match value:
            case _ if isinstance(value, FIXED):
                pass
            case list() | tuple() | deque():
                self.add_items(value)
                self.add_attributes(value)
            case Mapping():
                self.add_items(value.keys())
                self.add_items(value.values())
                self.add(getattr(value, "default_factory", None))
                self.add_attributes(value)
            case set() | frozenset():
                found = [content(held, self.page) for held in value]
                self.note(sorted(each.hash for each in found))
                self.seen_whole &= all(each.seen_whole for each in found)
                self.reads.update(*(each.reads for each in found))
            case bytearray():
                self.digest.update(value)
            case types.FunctionType():
                if value.__globals__ is self.page:
                    self.reads |= globals_read(value.__code__)
                self.add_items(cell.cell_contents for cell in value.__closure__ or () if not is_empty(cell))
                self.add_items([value.__defaults__, value.__kwdefaults__, vars(value)])
            case types.MethodType() | types.BuiltinFunctionType() | types.MethodWrapperType():
                self.add(value.__self__)
            case property():
                self.add_items([value.fget, value.fset, value.fdel])
            case partial():
                self.add_items([value.func, value.args, value.keywords])
            case staticmethod() | classmethod():
                self.add(value.__func__)
            case type():
                if is_of_the_page(value):
                    self.add_items(value.__bases__)
                    self.add(dict(vars(value)))
            case Iterator():
                self.add_hidden(value)
            case _:
                # An object without attributes of its own holds nothing, or hides what it holds.
                if not self.add_attributes(value) and type(value) is not object:
                    self.add_hidden(value)
                if callable(value):
                    self.add(getattr(value, "__wrapped__", None))
                if is_cache(value) and is_of_the_page(value):
                    self.note(value.cache_info().misses)
        if is_of_the_page(type(value)):
            self.add(type(value))

    def add_items(self, items: Any) -> None:
        items = list(items)
        self.note(len(items))
        if all(isinstance(item, PLAIN) for item in items):
            self.note([(type(item).__name__, item) for item in items])
            return
        for item in items:
            self.add(item)

    def add_hidden(self, value: Any) -> None:
        """How far an object has gone is not seen; what it goes through, Python's garbage collector knows."""
        self.seen_whole = False
        self.add_items(gc.get_referents(value))

    def add_attributes(self, value: Any) -> bool:
        """What stands in `__dict__` and `__slots__`; False if the object has neither."""
        own = getattr(value, "__dict__", None)
        slots = all_slots(type(value))
        for name in slots:
            self.add(getattr(value, name, None))
        if isinstance(own, dict):
            # A module of torch has a dozen empty dictionaries, for hooks: they are left out, to save time.
            held = {name: part for name, part in own.items() if not isinstance(part, dict) or part}
            self.add_items(held.keys())
            self.add_items(held.values())
        return isinstance(own, dict) or bool(slots)


def is_cache(value: Any) -> bool:
    """Whether this is a function that keeps its results, so that only its first call does anything."""
    return hasattr(value, "cache_info") and hasattr(value, "__wrapped__")


def is_of_the_page(kind: Any) -> bool:
    """Whether a class or function was defined on the page."""
    return kind.__module__ == "__main__"


@cache
def globals_read(code: types.CodeType) -> frozenset[str]:
    """The names at module level that a function reads, also in functions inside it."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = [globals_read(held) for held in code.co_consts if isinstance(held, types.CodeType)]
    return frozenset(names.union(*inner))


@cache
def all_slots(kind: type) -> tuple[str, ...]:
    """The names in the `__slots__` of a class and of those it comes from."""
    found = (vars(base).get("__slots__", ()) for base in kind.__mro__)
    names = {name for slots in found for name in ([slots] if isinstance(slots, str) else slots)}
    return tuple(sorted(names - NO_ATTRIBUTES))


def is_empty(cell: types.CellType) -> bool:
    """Whether a closure's variable has no value yet."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False
