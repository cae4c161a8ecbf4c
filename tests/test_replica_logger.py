"""The stand-in for a logger in a worker: writes are recorded, reads give main's values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from pams.logs import Log, Logger
from sample_agents import Note

from pams_parallel import LoggerStateError
from pams_parallel._replica_logger import (
    WRITE_METHODS,
    LoggerPartMissing,
    LoggerTraffic,
    LoggerView,
    make_replica_logger,
)


class SampleLogger(Logger):
    """Has attributes, methods, a property and class attributes."""

    level: ClassVar[str] = "of the class"
    subclasses: ClassVar[list[type]] = []
    instances: ClassVar[list[object]] = []

    def __init__(self) -> None:
        super().__init__()
        self.lines = ["a", "b"]
        self.size = 2
        SampleLogger.instances.append(self)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        SampleLogger.subclasses.append(cls)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def last(self) -> str:
        """Return the last line."""
        return self.lines[-1]

    def note(self, text: str) -> None:
        """Write a record; a method of the user that ends in one of PAMS's."""
        self.write(Note(text))

    def count(self) -> int:
        """Return the number of lines."""
        return len(self.lines)

    @classmethod
    def name_of_class(cls) -> str:
        """Return the name of the class."""
        return cls.__name__


NUMBER = 17


def stand_in(
    sent: dict[str, object] | None = None,
    unreadable: dict[str, str] | None = None,
    *,
    names: tuple[str, ...] = ("pending_logs", "lines", "size"),
    cls: type = SampleLogger,
    is_own_class: bool = True,
) -> tuple[Any, LoggerTraffic]:
    """Return the stand-in of a logger, and what is recorded of it."""
    sent, unreadable = sent or {}, unreadable or {}
    view = LoggerView("MainLogger", is_own_class, names, sent, unreadable)
    traffic = LoggerTraffic()
    return make_replica_logger(NUMBER, view, cls, traffic), traffic


# ----------------------------------------------------------------------------- writing


def test_writes_are_recorded_as_made() -> None:
    """The four ways to write are recorded in order, with the arguments as they were given."""
    logger, traffic = stand_in()
    one, two = Note("one"), Note("two")
    assert logger.write(one) is None
    logger.write(log=two)
    logger.bulk_write([one, two])
    logger.write_and_direct_process(log=one)
    logger.bulk_write_and_direct_process(logs=[])
    assert [tuple(call) for call in traffic.calls] == [
        (logger, "write", (one,), {}),
        (logger, "write", (), {"log": two}),
        (logger, "bulk_write", ([one, two],), {}),
        (logger, "write_and_direct_process", (), {"log": one}),
        (logger, "bulk_write_and_direct_process", (), {"logs": []}),
    ]
    assert all(call.logger is logger for call in traffic.calls)


def test_many_records_are_taken_at_once() -> None:
    """What happens to a list after it was written is not seen; an iterator is used up."""
    logger, traffic = stand_in()
    one, two = Note("one"), Note("two")
    buffer = [one]
    logger.bulk_write(buffer)
    logger.bulk_write_and_direct_process(logs=buffer)
    buffer[:] = [two, two]
    logger.bulk_write(iter(buffer))
    logger.bulk_write(())
    assert [call.args or call.kwargs for call in traffic.calls] == [
        ([one],),
        {"logs": [one]},
        ([two, two],),
        ((),),
    ]
    with pytest.raises(TypeError):
        logger.bulk_write(5)
    assert len(traffic.calls) == 4


def test_write_methods_are_those_of_the_logger() -> None:
    """All methods of PAMS's logger that take records to write are recorded."""
    names = {name for name in vars(Logger) if "write" in name}
    assert set(WRITE_METHODS) == names


def test_records_write_themselves() -> None:
    """What a record's own methods call is recorded."""
    logger, traffic = stand_in()
    note = Note("own")
    note.read_and_write(logger)
    note.read_and_write_with_direct_process(logger)
    assert [(call.method, call.kwargs) for call in traffic.calls] == [
        ("write", {"log": note}),
        ("write_and_direct_process", {"log": note}),
    ]


def test_users_methods_are_recorded_by_what_they_write() -> None:
    """A method of the user's logger runs here; what it writes is recorded."""
    logger, traffic = stand_in()
    logger.note("text")
    assert [call.method for call in traffic.calls] == ["write"]
    (record,) = traffic.calls[0].args
    assert isinstance(record, Note)
    assert record.text == "text"


def test_writing_reads_nothing() -> None:
    """A write needs no part of main's logger, and changes none."""
    logger, traffic = stand_in()
    for method in WRITE_METHODS:
        getattr(logger, method)([])
    assert traffic.needs == set()
    assert traffic.changed == {}


def test_what_the_class_does_when_it_writes_is_not_done_here() -> None:
    """A logger that overrides a way to write does so in main only."""

    class Loud(SampleLogger):
        def write(self, log: Log) -> None:
            raise AssertionError("written in the worker")

    logger, traffic = stand_in(cls=Loud)
    logger.write(Note("text"))
    assert len(traffic.calls) == 1


def test_bound_method_records() -> None:
    """A way to write that was taken from the logger before records, too."""
    logger, traffic = stand_in()
    write = logger.write
    traffic.calls = []
    write(Note("text"))
    assert len(traffic.calls) == 1


# ----------------------------------------------------------------------------- reading


def test_what_was_sent_can_be_read() -> None:
    """An attribute that came along is main's value, each time the same object."""
    lines = ["x"]
    logger, traffic = stand_in({"lines": lines, "size": None})
    assert logger.lines is lines
    assert logger.size is None
    assert logger.last == "x"
    assert logger.count() == len(logger) == 1
    assert traffic.needs == set()


def test_values_that_are_filled_in_later() -> None:
    """What is sent may be known only after the stand-in was made."""
    sent: dict[str, object] = {"size": 0}
    logger, _ = stand_in(sent)
    sent["size"] = 5
    assert logger.size == 5


READS: dict[str, Callable[[Any], object]] = {
    "attribute": lambda logger: logger.lines,
    "method": lambda logger: logger.count(),
    "property": lambda logger: logger.last,
    "len": len,
    "hasattr": lambda logger: hasattr(logger, "lines"),
    "default": lambda logger: getattr(logger, "lines", None),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_what_was_not_sent_is_needed(read: Callable[[Any], object]) -> None:
    """Reading a part that main's logger has and that was not sent ends the call, and is noted."""
    logger, traffic = stand_in({"size": 2})
    with pytest.raises(LoggerPartMissing):
        read(logger)
    assert traffic.needs == {(NUMBER, "lines")}


def test_signal_passes_an_agents_handlers() -> None:
    """An agent that catches exceptions does not catch the signal by it."""
    assert not issubclass(LoggerPartMissing, Exception)


def test_signal_that_is_caught_is_noted_all_the_same() -> None:
    """An agent that catches everything does not hide what it wanted to read."""
    logger, traffic = stand_in()
    try:
        logger.lines  # noqa: B018 - the read is the point
    except BaseException:
        value = None
    assert value is None
    assert traffic.needs == {(NUMBER, "lines")}


def test_needs_add_up() -> None:
    """Several parts that are missed are all noted."""
    logger, traffic = stand_in()
    for name in ("lines", "size", "lines"):
        with pytest.raises(LoggerPartMissing):
            getattr(logger, name)
    assert traffic.needs == {(NUMBER, "lines"), (NUMBER, "size")}


def test_unreadable_part() -> None:
    """Reading a part that cannot be sent is an error that names it, the logger and the reason."""
    logger, traffic = stand_in(unreadable={"lines": "TypeError: cannot pickle"})
    with pytest.raises(LoggerStateError) as caught:
        logger.last  # noqa: B018 - the read is the point
    for part in ("'lines'", "MainLogger", "TypeError: cannot pickle"):
        assert part in str(caught.value)
    assert traffic.needs == set()


def test_absent_attribute() -> None:
    """What main's logger lacks is an AttributeError, and no reason to ask again."""
    logger, traffic = stand_in()
    with pytest.raises(AttributeError, match="absent"):
        logger.absent  # noqa: B018 - the read is the point
    assert getattr(logger, "absent", 7) == 7
    assert traffic.needs == set()


def test_attributes_of_the_class() -> None:
    """What the class has is there without being sent."""
    logger, traffic = stand_in()
    assert logger.level == "of the class"
    assert logger.name_of_class() == "MainLogger"
    assert SampleLogger.count.__name__ == logger.count.__name__
    assert traffic.needs == set()


def test_instance_comes_before_the_class() -> None:
    """An attribute that main's instance has hides the one of the class."""
    logger, _ = stand_in({"level": "of main"}, names=("level",))
    assert logger.level == "of main"
    missing, traffic = stand_in(names=("level",))
    with pytest.raises(LoggerPartMissing):
        missing.level  # noqa: B018 - the read is the point
    assert traffic.needs == {(NUMBER, "level")}


def test_all_attributes_at_once() -> None:
    """`vars` of the logger gives all of main's, or needs all that were not sent."""
    logger, traffic = stand_in({"lines": ["a"], "size": 2, "pending_logs": []})
    assert vars(logger) == {"pending_logs": [], "lines": ["a"], "size": 2}
    logger, traffic = stand_in({"size": 2})
    with pytest.raises(LoggerPartMissing):
        vars(logger)
    assert traffic.needs == {(NUMBER, "lines"), (NUMBER, "pending_logs")}


def test_all_attributes_with_an_unreadable_one() -> None:
    """`vars` of a logger that cannot be read as a whole is an error that says so."""
    logger, _ = stand_in({"size": 2, "pending_logs": []}, {"lines": "no"})
    with pytest.raises(LoggerStateError, match="'lines'"):
        vars(logger)


# --------------------------------------------------------------------------- the class


def test_is_an_instance() -> None:
    """The stand-in is an instance of the logger's class and its bases, and says so."""
    logger, traffic = stand_in()
    assert isinstance(logger, SampleLogger)
    assert isinstance(logger, Logger)
    assert not isinstance(logger, Log)
    assert logger.__class__ is SampleLogger
    assert type(logger).__name__ == "MainLogger"
    assert traffic.needs == set()


def test_constructor_and_subclass_hook_are_not_run() -> None:
    """Making the stand-in calls nothing of the user: no constructor, no ``__init_subclass__``."""
    SampleLogger.subclasses.clear()
    SampleLogger.instances.clear()
    stand_in()
    assert SampleLogger.subclasses == []
    assert SampleLogger.instances == []


def test_logger_without_its_own_class() -> None:
    """Where only a base could be sent, what its class may have is an error that says so."""
    logger, traffic = stand_in(is_own_class=False, cls=Logger)
    logger.write(Note("text"))
    assert len(traffic.calls) == 1
    with pytest.raises(LoggerStateError, match=r"'note' of the logger MainLogger .*its class"):
        logger.note("text")
    with pytest.raises(AttributeError):
        logger.__len__  # noqa: B018 - Python itself looks for such names
    with pytest.raises(LoggerPartMissing):
        logger.lines  # noqa: B018 - the read is the point


def test_logger_with_slots() -> None:
    """A logger that keeps something in a slot is read in the same way."""

    class Slotted(Logger):
        __slots__ = ("slot",)
        slot: int

    logger, _ = stand_in({"slot": 7}, names=("pending_logs", "slot"), cls=Slotted)
    assert logger.slot == 7
    missing, traffic = stand_in(names=("slot",), cls=Slotted)
    with pytest.raises(LoggerPartMissing):
        missing.slot  # noqa: B018 - the read is the point
    assert traffic.needs == {(NUMBER, "slot")}


def test_is_what_it_is_in_a_dict() -> None:
    """The stand-in is equal to itself only, and can be a key."""
    logger, traffic = stand_in()
    other, _ = stand_in()
    assert logger == logger
    assert logger != other
    assert {logger: 1}[logger] == 1
    assert bool(stand_in({"lines": []})[0]) is False  # as its class says: it is empty
    assert traffic.needs == set()


# ---------------------------------------------------------------------------- changing


def test_setting() -> None:
    """A value that is set is there for later reads, and is noted: it does not come back."""
    logger, traffic = stand_in({"size": 2})
    logger.size = 5
    logger.lines = ["mine"]
    logger.new = 1
    assert (logger.size, logger.lines, logger.new, logger.last) == (5, ["mine"], 1, "mine")
    assert traffic.changed == {NUMBER: {"size", "lines", "new"}}
    assert traffic.needs == set()


def test_setting_shows_in_vars() -> None:
    """`vars` shows what was set over what main has."""
    logger, _ = stand_in({"lines": ["a"], "size": 2, "pending_logs": []})
    logger.size = 5
    assert vars(logger) == {"pending_logs": [], "lines": ["a"], "size": 5}


def test_deleting() -> None:
    """A deleted attribute is gone here, and is noted."""
    logger, traffic = stand_in({"size": 2})
    del logger.size
    assert not hasattr(logger, "size")
    assert traffic.changed == {NUMBER: {"size"}}
    with pytest.raises(AttributeError):
        del logger.size
    logger.size = 9
    assert logger.size == 9


def test_deleted_attribute_is_not_in_vars() -> None:
    """`vars` does not show what was deleted."""
    logger, _ = stand_in({"lines": ["a"], "size": 2, "pending_logs": []})
    del logger.size
    assert vars(logger) == {"pending_logs": [], "lines": ["a"]}


def test_deleting_what_is_not_there() -> None:
    """Deleting what main's logger lacks is an AttributeError, and no change."""
    logger, traffic = stand_in()
    with pytest.raises(AttributeError, match="absent"):
        del logger.absent
    assert traffic.changed == {}


def test_deleting_what_was_not_sent() -> None:
    """Deleting a part that was not sent needs it first: it may not be there."""
    logger, traffic = stand_in()
    with pytest.raises(LoggerPartMissing):
        del logger.lines
    assert traffic.needs == {(NUMBER, "lines")}
    assert traffic.changed == {}


def test_deleted_attribute_shows_the_class() -> None:
    """Under a deleted attribute the one of the class comes to light."""
    logger, _ = stand_in({"level": "of main"}, names=("level",))
    del logger.level
    assert logger.level == "of the class"


def test_two_loggers_do_not_mix() -> None:
    """Each stand-in has its own attributes, calls and changes."""
    traffic = LoggerTraffic()
    views = [LoggerView("MainLogger", True, ("size",), {"size": size}) for size in (1, 2)]
    first: Any = make_replica_logger(1, views[0], SampleLogger, traffic)
    second: Any = make_replica_logger(2, views[1], SampleLogger, traffic)
    first.size = 5
    assert (first.size, second.size) == (5, 2)
    second.write("log")
    assert traffic.changed == {1: {"size"}}
    assert [call.logger is second for call in traffic.calls] == [True]


def test_is_not_pickled_itself() -> None:
    """A stand-in that would have to be written by value is an error, no silent copy."""
    logger, _ = stand_in({"lines": [], "size": 2, "pending_logs": []})
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(logger)
