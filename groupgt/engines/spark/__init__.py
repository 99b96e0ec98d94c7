"""Evaluation on Apache Spark. `per_query` and `means` are for those who go on there."""

from groupgt.engines.spark.values import means as means
from groupgt.engines.spark.values import per_query as per_query
