"""The error budget of certificates that are learned again and again.

Who learns anew until something is certified gives chance as many chances. So the attempts of one
series share one budget: the k-th is judged at delta_k, and since these sum to delta, the
probability that any attempt ever certifies falsely is at most delta, whatever made it be attempted
and however alike the data of two attempts are (a union bound; "alpha spending" of Lan & DeMets,
Biometrika 70, 1983, without a last look planned; Foster & Stine, J. R. Stat. Soc. B 70, 2008).

delta_k = delta / (k (k + 1)). The number of clean answers that a level takes grows with the
logarithm of 1 / delta_k: at delta = .1 the first attempt takes 1.3 times as many as one that stands
alone, the third 2.1 times, the tenth 3 times; data gather faster than that. A schedule that favours
the first attempt more (6 / (pi k)^2: 1.2 times) has less for the second to tenth, which are those
that tell when a first was too early; one that favours later ones less steeply does not sum.
"""


def attempt_delta(delta: float, attempt: int) -> float:
    """The share of the budget `delta` that one attempt at certifying may spend.

    `attempt` 0 stands alone and spends all of it: who learns again on grown data and takes the
    better is not covered. 1, 2, ... are those of a series. Raises ValueError for other numbers.
    """
    if attempt < 0:
        raise ValueError(f"attempts are counted from 1 (0: one that stands alone), not {attempt}")
    return delta / (attempt * (attempt + 1)) if attempt else delta
