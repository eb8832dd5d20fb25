def say(text):
    return {"text": text}


class Say:
    pass
