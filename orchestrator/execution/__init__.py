"""One evaluation, supervised: an attempt in, an outcome out. Knows no search and no budget."""
