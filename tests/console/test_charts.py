from checkrein.console.charts import HEIGHT, PADDING, WIDTH, chart


def test_points_go_from_left_to_right_and_more_is_higher():
    found = chart(
        [(0.0, "failure", "a", "1"), (0.5, "success", "b", "2"), (1.0, "success", "c", "3")], (0.8,)
    )
    assert [each.x for each in found.points] == [PADDING, WIDTH / 2, WIDTH - PADDING]
    assert [each.y for each in found.points] == [HEIGHT - PADDING, HEIGHT / 2, PADDING]
    assert found.line.count(",") == 3
    assert [label for _, label in found.grid] == ["0", "0.8", "1"]


def test_one_point_and_scores_out_of_range_stay_inside():
    found = chart([(7.0, "success", "a", "1")])
    assert (found.points[0].x, found.points[0].y) == (PADDING, PADDING)
