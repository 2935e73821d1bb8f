"""Numbers as people read them."""

from rooda.base.numbers import money


def test_an_amount_below_one_cent_has_four_decimals() -> None:
    amounts = (0, 0.0042, 18.4, 1234.5)
    assert [money(one) for one in amounts] == ["$0.00", "$0.0042", "$18.40", "$1,234.50"]
