"""Localisation, the slow and obvious way: over records of units, with dicts, lists and all paths."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tests.oracles import bestpaths

SLOTS = ("subject", "relation", "object", "category")


def match(name, held, vectors):
    """Of the name of a slot that is wanted with the one a unit holds."""
    if held is None:
        return 0.0
    if name == held:
        return 1.0
    a, b = np.asarray(vectors[name], float), np.asarray(vectors[held], float)
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(np.clip(a @ b / norms, 0, 1)) if norms else 0.0


def relevance(group, wanted, vectors, options):
    best = 0.0
    for one in wanted:
        weights = {"subject": options.subject, "category": options.category}
        given = [slot for slot in weights if one[slot] is not None]
        whole = sum(weights[slot] for slot in given)
        if whole:
            held = {"subject": group[0], "category": group[1]}
            total = sum(weights[slot] / whole * match(one[slot], held[slot], vectors) for slot in given)
            best = max(best, float(np.float32(total)))
    return best


def chosen_graphs(units, wanted, vectors, options):
    """The MicroGraphs that are looked into, with their active units."""
    groups = {}
    for unit in units:
        groups.setdefault((unit.subject, unit.category), []).append(unit)
    made = list(groups)
    found, seen = {}, set()

    def choose(some):
        some = [group for group in dict.fromkeys(some) if group not in seen][: options.considered]
        seen.update(some)
        ranked = [
            (-relevance(group, wanted, vectors, options), -groups[group][-1].id, group) for group in some
        ]
        for score, _, group in sorted(ranked):
            latest = groups[group][::-1][: 4 * options.members]
            active = [unit for unit in latest if unit.status == "active"][: options.members]
            if active and len(found) < options.graphs:
                found[group] = (-score, active)

    def in_turn(lists):
        longest = max(map(len, lists), default=0)
        return [some[place] for place in range(longest) for some in lists if place < len(some)]

    subjects = [one["subject"] for one in wanted if one["subject"] is not None]
    categories = [one["category"] for one in wanted if one["category"] is not None]
    own = [(a, b) for a in subjects for b in categories if (a, b) in groups]
    choose(
        own
        + in_turn(
            [[group for group in made[::-1] if group[0] == name][: options.considered] for name in subjects]
        )
    )
    if len(found) < options.graphs:
        latest = [
            [unit for unit in units[::-1] if unit.category == name][: options.considered]
            for name in categories
        ]
        choose(in_turn([[(unit.subject, unit.category) for unit in some] for some in latest]))
    return found


def supports(unit):
    return {one for needed in unit.supports for one in needed}


def qualities(units, wanted, now, vectors):
    """As the arrays of `hmem_kernels.bestpaths.Qualities`."""

    def matches(unit, one):
        given = [slot for slot in SLOTS if one[slot] is not None]
        total = sum(match(one[slot], getattr(unit, slot), vectors) for slot in given)
        return np.float32(total) / np.float32(max(len(given), 1))

    def contexts(unit):
        if not wanted or not unit.contexts or not all(one["contexts"] for one in wanted):
            return 1.0
        return max(
            sum(max(match(name, held, vectors) for held in unit.contexts) for name in one["contexts"])
            / len(one["contexts"])
            for one in wanted
        )

    def valid(unit):
        start, end = unit.valid_from, unit.valid_to
        return (start is None or start <= now) and (end is None or now < end)

    return SimpleNamespace(
        match=np.array([[matches(unit, one) for unit in units] for one in wanted], np.float32).reshape(
            len(wanted), len(units)
        ),
        valid=np.array([float(valid(unit)) for unit in units], np.float32),
        context=np.array([contexts(unit) for unit in units], np.float32),
        confidence=np.array([unit.confidence for unit in units], np.float32),
        moment=np.array([unit.id for unit in units], np.int64),
    )


def edges(units, known, options):
    """From each unit, where a step leads, and whether that is a dependency."""
    fit = [
        float(
            np.float32(
                options.attributes * (sum(known.match[:, place]) / max(len(known.match), 1))
                + options.validity * known.valid[place]
                + options.context * known.context[place]
            )
        )
        for place in range(len(units))
    ]
    order = sorted(
        range(len(units)),
        key=lambda place: (-fit[place], -units[place].confidence, -known.moment[place]),
    )
    found = [{} for _ in units]
    upper = {}
    for place in order:
        unit = units[place]
        nodes = [("subject", unit.subject), ("category", unit.category)]
        for node in [*nodes, *(("context", name) for name in unit.contexts)]:
            if node[1] is not None:
                upper.setdefault(node, []).append(place)
    for members in upper.values():
        for a in members:
            for b in members[: options.neighbours]:
                if a != b:
                    found[a][b] = 0
    for a, one in enumerate(units):
        for b, other in enumerate(units):
            if a != b and other.id in supports(one):
                found[a][b] = found[b][a] = 1
    return found


def localise(units, wanted, now, vectors, options):
    """The units of the region, the path, and the candidates with φ and its parts.

    Args:
        units: all records, whatever their status, by id.
        wanted: dicts of names, None for an empty slot.
        vectors: of every name.
    """
    exact = [
        unit
        for unit in units
        if any(unit.subject == one["subject"] and unit.relation == one["relation"] for one in wanted)
    ]
    graphs = chosen_graphs(units, wanted, vectors, options)
    inside = {unit.id for _, members in graphs.values() for unit in members}
    inside |= {unit.id for unit in [unit for unit in exact if unit.status == "active"][-options.members :]}
    active = {unit.id: unit for unit in units if unit.status == "active"}
    outside = {
        unit.id
        for unit in active.values()
        for one in inside
        if unit.id not in inside and (one in supports(unit) or unit.id in supports(active[one]))
    }
    outside = sorted(outside)[-options.graphs * options.members :]
    chosen = [active[one] for one in sorted([*inside, *outside])]
    known = qualities(chosen, wanted, now, vectors)
    steps = edges_within(chosen, inside, known, options)
    graph = SimpleNamespace(
        offsets=np.cumsum([0, *map(len, steps)]),
        targets=[b for some in steps for b in some],
        kinds=[kind for some in steps for kind in some.values()],
    )
    weights = [options.attributes, options.dependency, options.validity, options.context]
    keep = options.candidates if wanted else 0
    rows, sizes, parts = np.zeros((keep, options.depth + 1), int), np.zeros(keep, int), np.zeros((keep, 6))
    kept, _ = bestpaths.best_paths(range(len(chosen)), graph, known, weights, rows, sizes, parts)
    candidates = [
        (tuple(chosen[place].id for place in rows[row, : sizes[row]]), parts[row].tolist())
        for row in range(kept)
    ]
    path = candidates[0][0] if candidates else ()
    region = {unit.id for unit in exact} | set(path)
    region |= {unit.id for unit in units if supports(unit) & region}
    return region, path, candidates, {group: score for group, (score, _) in graphs.items()}


def edges_within(chosen, inside, known, options):
    """Of dependencies, those that have an end inside the MicroGraphs."""
    found = edges(chosen, known, options)
    structural = edges([StrippedUnit(unit) for unit in chosen], known, options)
    for a, some in enumerate(found):
        for b in list(some):
            if chosen[a].id not in inside and chosen[b].id not in inside:
                if b in structural[a]:
                    some[b] = 0
                else:
                    del some[b]
    return found


class StrippedUnit:
    """A unit that rests on nothing."""

    def __init__(self, unit):
        self._unit = unit
        self.supports = ()

    def __getattr__(self, name):
        return getattr(self._unit, name)
