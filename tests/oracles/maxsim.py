"""Late interaction, slow and obvious: bits taken one by one, and a rotation as a matrix."""

import math

import numpy as np


def hadamard(size):
    """The Hadamard matrix of a power of 2, as Sylvester made it, with rows of length 1."""
    return np.array(
        [[(-1) ** (i & j).bit_count() / math.sqrt(size) for j in range(size)] for i in range(size)]
    )


def rotate(rows, flips, power):
    turned = rows.astype(np.float64)
    for number, signs in enumerate(flips):
        turned = turned * signs
        first = 0 if number % 2 == 0 else turned.shape[1] - power
        turned[:, first : first + power] = turned[:, first : first + power] @ hadamard(power)
    return turned


def bits(words):
    return [int(word) >> place & 1 for word in words for place in range(64)]


def best_matches(codes, factors, offsets, rows, planes, scale):
    best = np.full((len(planes), len(rows)), np.nan)
    for q, (of_query, (low, step, total)) in enumerate(zip(planes, scale.astype(np.float64), strict=True)):
        numbers = [
            sum(bit << b for b, bit in enumerate(each)) for each in zip(*map(bits, of_query), strict=True)
        ]
        for i, row in enumerate(rows):
            found = []
            for token in range(offsets[row], offsets[row + 1]):
                positive = sum(
                    low + step * u for u, bit in zip(numbers, bits(codes[token]), strict=True) if bit
                )
                found.append((1 + int(factors[token]) / 256) * (2 * positive - total))
            if found:
                best[q, i] = max(found)
    return best
