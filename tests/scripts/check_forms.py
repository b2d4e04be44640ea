"""check_forms.py NOTHING AUTOLAB GRADED - the JSON that autograders get from a lab has the form that they read.

NOTHING is Gradescope's JSON of a submission that could not be graded, and GRADED that of a copy with 1 of 13 points.
AUTOLAB is Autolab's JSON of the same submission as NOTHING.  labs.sh, which calls this program, makes the three files.
"""
import json
import sys

nothing, autolab, graded = (json.load(open(name)) for name in sys.argv[1:])
number = (int, float)
for results, score in (nothing, 0), (graded, 1):
    assert set(results) == {"score", "tests"} and results["score"] == score, results
    for test in results["tests"]:
        assert set(test) == {"name", "score", "max_score", "output"}, test
        assert isinstance(test["name"], str) and isinstance(test["output"], str), test
        assert isinstance(test["score"], number) and 0 <= test["score"] <= test["max_score"], test
    assert sum(test["score"] for test in results["tests"]) == score
    assert sum(test["max_score"] for test in results["tests"]) == 13
assert nothing["tests"][0]["output"] == 'a "quoted" \\ word\ttab\nand a line', nothing["tests"][0]
assert set(autolab) == {"scores"} and all(isinstance(n, number) for n in autolab["scores"].values()), autolab
assert len(autolab["scores"]) == len(nothing["tests"])
