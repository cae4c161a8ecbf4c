"""Which objects of a replica agents may return references to; all others come back as copies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from .._simulation import View, generators_of, parts_of_simulation, shared_objects
from .replica import Replica


class PublicObjects:
    """The references of what comes back from a worker.

    Valid for one task. What is public is found out when it is first asked for something that has
    a number, from the replica as main has it: agents may have changed it by then.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._view = _AsSent(replica)
        self._numbers: set[int] | None = None
        self._of_agents: set[int] | None = None

    def persistent_id(self, obj: object, /) -> int | None:
        """Return the number of an object that agents may return a reference to."""
        number = self._replica.numbers.get(id(obj))
        if number is None or isinstance(obj, type):  # classes have names
            return None
        if number in self.numbers:
            return number
        if isinstance(obj, random.Random) and number in self._generators_of_agents():
            return number
        return None

    def persistent_load(self, pid: object, /) -> object:
        """Return the object with a number.

        Raises:
            UnknownReferenceError: there is none.
        """
        return self._replica.persistent_load(pid)

    @property
    def numbers(self) -> set[int]:
        """The numbers of these objects, without the generators of agents."""
        if self._numbers is None:
            replica = self._replica
            found = shared_objects(replica.objects[replica.simulator], self._view)
            self._numbers = {*replica.views, *self._numbers_of(found)}
        return self._numbers

    def structure(self) -> list[int]:
        """Return the numbers of all but agents, orders, and what orders hold: they are few."""
        simulator = self._replica.objects[self._replica.simulator]
        return [*self._numbers_of(shared_objects(simulator, self._view, only_few=True))]

    def _generators_of_agents(self) -> set[int]:
        if self._of_agents is None:
            simulator = self._replica.objects[self._replica.simulator]
            self._of_agents = set(
                self._numbers_of(
                    generator
                    for part in parts_of_simulation(simulator, self._view)
                    for generator in generators_of(self._view.attributes(part))
                )
            )
        return self._of_agents

    def _numbers_of(self, objects: Iterable[object]) -> Iterable[int]:
        found = map(self._replica.numbers.get, map(id, objects))
        return (number for number in found if number is not None)


class _AsSent(View):
    """Looks at the rows as main sent them."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def attributes(self, obj: object) -> Mapping[str, object]:
        row = self._row(obj)
        if row is None:
            return super().attributes(obj)
        # a slot's name has its class before it
        return {str(key).rpartition(".")[2]: value for key, value in zip(*row, strict=False)}

    def items(self, container: object) -> Iterable[object]:
        row = self._row(container)
        return super().items(container) if row is None else row[1]

    def _row(self, obj: object) -> tuple[tuple[object, ...], list[object]] | None:
        number = self._replica.numbers.get(id(obj))
        return None if number is None else self._replica.row_as_sent(number)
