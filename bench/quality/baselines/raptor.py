"""RAPTOR (Sarthi et al., arXiv 2401.18059) without its summaries.

Nodes are clustered softly by Gaussian mixtures, first all of them, then those of each cluster; the number of
components is that of the least BIC. Each cluster becomes a node of the next layer, and so on until too few
are left. Search is over all layers at once. Where the paper reduces embeddings by UMAP, we take the spectral
embedding of the graph of nearest neighbours, from which UMAP starts; where it embeds a summary by a language
model, we take the mean of the cluster's turns. Other constants are those of the authors' code.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

from bench.quality.baselines.base import Corpus, Find, FloatArray
from bench.quality.baselines.collapsed import Members, collapsed, unit

__all__ = ["clusters", "layers", "raptor"]

DIMENSIONS = 10
"""Of the reduced embeddings; so few nodes and one more are not clustered any further."""
LOCAL_NEIGHBOURS = 10
LIKELY = 0.1
"""A node belongs to every component of at least this probability."""
MOST = 50
"""Components, at most."""
PATIENCE = 10
"""More components are not tried when so many numbers of them in a row were no better (ours)."""
LAYERS = 5


def raptor(corpus: Corpus) -> Find:
    """Turns by the collapsed tree over them."""
    groups = layers(corpus.vectors)
    return collapsed(corpus, groups, [corpus.vectors[group].mean(0) for group in groups])


def layers(vectors: FloatArray) -> list[Members]:
    """The turns below each inner node, layer by layer upwards."""
    found: list[Members] = []
    below: list[Members] = [np.array([turn]) for turn in range(len(vectors))]
    for _ in range(LAYERS):
        nodes = unit(np.array([vectors[members].mean(0) for members in below], np.float32))
        if len(nodes) <= DIMENSIONS + 1:
            break
        made = [np.unique(np.concatenate([below[one] for one in cluster])) for cluster in clusters(nodes)]
        if len(made) >= len(below):
            break
        found += made
        below = made
    return found


def clusters(nodes: FloatArray) -> list[Members]:
    """Clusters of all nodes, split once more where they are large. A node may be in several."""
    found = []
    for cluster in _mixture(nodes, round(len(nodes) ** 0.5)):
        if cluster.size <= DIMENSIONS + 1:
            found.append(cluster)
        else:
            found += [cluster[part] for part in _mixture(nodes[cluster], LOCAL_NEIGHBOURS)]
    return found


def _mixture(nodes: FloatArray, neighbours: int) -> list[Members]:
    """The nodes of each component of the mixture of the least BIC."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # a graph in several parts is what is looked for
        reduced = _reduced(nodes, min(neighbours, len(nodes) - 1))
        likely = _best_mixture(reduced).predict_proba(reduced) >= LIKELY
    return [members for column in likely.T if (members := np.flatnonzero(column)).size]


def _best_mixture(rows: npt.NDArray[np.float64]) -> GaussianMixture:
    from sklearn.mixture import GaussianMixture

    best, least, vain = None, np.inf, 0
    for components in range(1, min(MOST, len(rows))):
        mixture = GaussianMixture(components, random_state=0).fit(rows)
        bic, vain = mixture.bic(rows), vain + 1
        if bic < least:
            best, least, vain = mixture, bic, 0
        if vain == PATIENCE:
            break
    return best


def _reduced(nodes: FloatArray, neighbours: int) -> npt.NDArray[np.float64]:
    """Shape (nodes, DIMENSIONS), each dimension of unit variance."""
    from sklearn.manifold import SpectralEmbedding

    embedding = SpectralEmbedding(
        DIMENSIONS, affinity="nearest_neighbors", n_neighbors=neighbours, random_state=0
    )
    rows: npt.NDArray[np.float64] = embedding.fit_transform(nodes).astype(np.float64)
    rows /= np.maximum(rows.std(0), 1e-12)
    return rows
