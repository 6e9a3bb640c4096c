from scripts.bench.training import TrainingProblem


def test_a_training_scores_the_same_again_and_its_default_has_regret_one() -> None:
    problem = TrainingProblem("optimizer", 1)
    score = problem.score(problem.default, 3)
    assert score is not None
    assert 2 < score < 5
    assert problem.score(problem.default, 3) == score
    assert problem.regret(problem.default) == 1
