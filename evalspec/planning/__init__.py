"""Which questions, prompts, jobs and devices does a study come down to?"""
