"""Evaluation on Apache Spark. `per_query` and `means` are for further work in Spark."""

from groupgt.engines.spark.values import means as means
from groupgt.engines.spark.values import per_query as per_query
