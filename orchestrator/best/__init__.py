"""What a search recommends, in every form that it is taken over in; and one more training of it."""
