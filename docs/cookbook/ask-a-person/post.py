"""The post office of this folder."""


def send(to: str, text: str) -> dict:
    line = f"to {to}: {text}"
    with open("sent.txt", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    return {"line": line}
