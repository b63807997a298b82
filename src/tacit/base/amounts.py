"""Amounts as people read them: money, numbers of tokens and of things."""


def dollars(money: float) -> str:
    """Two places from ten cents on, else enough to see something."""
    return f"${money:,.2f}" if money >= 0.1 or money == 0 else f"${money:.4f}"


def amount(number: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if number < 1000:
        return str(number)
    if number < 999_500:
        return f"{number / 1000:.1f}k" if number < 99_950 else f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def counted(number: int, noun: str) -> str:
    """`1 skill`, `11,493 skills`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
