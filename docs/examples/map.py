"""Call a function of this file on other machines; results arrive in the order of the items."""

import math

import argosy


def area(radius: int) -> float:
    return math.pi * radius**2


if __name__ == "__main__":
    areas = list(argosy.map(area, range(100), batch=50))
    print(f"{len(areas)} areas, the last is {areas[-1]:.1f}")
