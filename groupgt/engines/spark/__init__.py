"""Evaluation on Apache Spark; the output of `per_query` and `means` can be processed further in Spark."""

from groupgt.engines.spark.values import means as means
from groupgt.engines.spark.values import per_query as per_query
