"""Postings, slow and obvious: each turn is a dictionary of the weights of its terms."""


def bm25(turns, terms, idf, live=None, k1=1.2, b=0.75, average=1.0):
    """The score of each turn."""
    scores = []
    for t, turn in enumerate(turns):
        saturation = k1 * (1 - b + b * sum(turn.values()) / average)
        gains = [
            w * turn[term] * (k1 + 1) / (turn[term] + saturation)
            for term, w in zip(terms, idf, strict=True)
            if term in turn
        ]
        scores.append(sum(gains) if live is None or live[t] else 0.0)
    return scores


def merge_postings(turns, n_terms, live=None):
    """Of each term, (turn, weight) in order."""
    return [
        [(t, turn[term]) for t, turn in enumerate(turns) if term in turn and (live is None or live[t])]
        for term in range(n_terms)
    ]


def add_postings(turns, n_terms):
    """Of each term, (turn, weight) with the latest first."""
    return [postings[::-1] for postings in merge_postings(turns, n_terms)]


def latest_postings(turns, terms, most):
    """Of each term, how many turns have it, and the latest of them."""
    having = [[t for t, turn in enumerate(turns) if term in turn] for term in terms]
    return [len(some) for some in having], [some[::-1][:most] for some in having]
