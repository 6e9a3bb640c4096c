"""One evaluation, supervised: an attempt in, an outcome out. Knows no search and no budget."""


class Insisted(BaseException):
    """The second SIGINT or SIGTERM has come. Its argument is the signal's number."""
