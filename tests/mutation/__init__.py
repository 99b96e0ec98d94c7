"""Mutation testing: does some test fail where a module is changed a little?

`python -m tests.mutation --module groupgt/metrics/sets.py --budget 600` changes one operator, constant, comparison or
statement at a time and runs the tests that concern the module, until the budget of seconds is spent. Who survives is
printed: a hole in the tests, or a change that nothing can tell from the original, which only a reader can say.
"""
