"""What the acceptance suite needs: a user in a folder, who has the product's command line."""

from tests.product.approved import approved
from tests.product.fixtures import looker, page_of, product, shared
from tests.product.pages import browser
from tests.product.slurm import cluster, slurm

__all__ = ["approved", "browser", "cluster", "looker", "page_of", "product", "shared", "slurm"]
