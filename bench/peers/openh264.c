/* Cisco's openh264, files to files: encodes a video (YUV4MPEG2, 4:2:0) at a fixed quantiser, or decodes a stream of bytes.
 *
 *   openh264 --probe
 *   openh264 encode IN.y4m OUT.h264 QP THREADS
 *   openh264 decode IN.h264 OUT.yuv
 *
 * Exit status 0 if it was done, else 1 with the reason on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wels/codec_api.h>

static void fail(const char *why, const char *what) {
    fprintf(stderr, "openh264: %s %s\n", why, what);
    exit(1);
}

static FILE *opened(const char *name, const char *mode) {
    FILE *file = fopen(name, mode);
    if (!file) fail("cannot open", name);
    return file;
}

static int encode(const char *from, const char *to, int qp, int threads) {
    FILE *in = opened(from, "rb"), *out = opened(to, "wb");
    char line[4096];
    int width = 0, height = 0, rate = 25, per = 1;
    if (!fgets(line, sizeof line, in)) fail("no header in", from);
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        if (*word == 'W') width = atoi(word + 1);
        if (*word == 'H') height = atoi(word + 1);
        if (*word == 'F') sscanf(word + 1, "%d:%d", &rate, &per);
    }
    if (width < 16 || height < 16) fail("no size in", from);

    ISVCEncoder *encoder = NULL;
    if (WelsCreateSVCEncoder(&encoder)) fail("no encoder for", from);
    SEncParamExt wanted;
    (*encoder)->GetDefaultParams(encoder, &wanted);
    wanted.iUsageType = CAMERA_VIDEO_REAL_TIME;
    wanted.iPicWidth = width;
    wanted.iPicHeight = height;
    wanted.fMaxFrameRate = (float)rate / (float)per;
    wanted.iRCMode = RC_OFF_MODE;
    wanted.iMultipleThreadIdc = (unsigned short)threads;
    wanted.uiIntraPeriod = 250;
    wanted.iNumRefFrame = 1;
    wanted.iMinQp = wanted.iMaxQp = qp;
    wanted.bEnableFrameSkip = false;
    wanted.bEnableAdaptiveQuant = false;
    wanted.bEnableBackgroundDetection = false;
    SSpatialLayerConfig *layer = &wanted.sSpatialLayers[0];
    layer->uiProfileIdc = PRO_BASELINE;
    layer->iVideoWidth = width;
    layer->iVideoHeight = height;
    layer->fFrameRate = wanted.fMaxFrameRate;
    layer->iDLayerQp = qp;
    /* As many slices as threads: they are what it divides among them. */
    layer->sSliceArgument.uiSliceMode = threads > 1 ? SM_FIXEDSLCNUM_SLICE : SM_SINGLE_SLICE;
    layer->sSliceArgument.uiSliceNum = (unsigned)threads;
    if ((*encoder)->InitializeExt(encoder, &wanted)) fail("refuses the size of", from);

    size_t luma = (size_t)width * height, bytes = luma * 3 / 2;
    unsigned char *samples = malloc(bytes);
    SSourcePicture picture = {0};
    picture.iColorFormat = videoFormatI420;
    picture.iPicWidth = width;
    picture.iPicHeight = height;
    picture.iStride[0] = width;
    picture.iStride[1] = picture.iStride[2] = width / 2;
    picture.pData[0] = samples;
    picture.pData[1] = samples + luma;
    picture.pData[2] = samples + luma + luma / 4;
    for (long long number = 0; fgets(line, sizeof line, in); number++) {
        if (fread(samples, 1, bytes, in) != bytes) fail("picture cut off in", from);
        picture.uiTimeStamp = number * 1000 * per / rate;
        SFrameBSInfo made = {0};
        if ((*encoder)->EncodeFrame(encoder, &picture, &made)) fail("cannot encode", from);
        for (int i = 0; i < made.iLayerNum; i++) {
            size_t length = 0;
            for (int k = 0; k < made.sLayerInfo[i].iNalCount; k++)
                length += (size_t)made.sLayerInfo[i].pNalLengthInByte[k];
            if (fwrite(made.sLayerInfo[i].pBsBuf, 1, length, out) != length) fail("cannot write", to);
        }
    }
    if (fclose(out)) fail("cannot write", to);
    return 0;
}

static void show(FILE *out, unsigned char *planes[3], const SBufferInfo *shown) {
    const SSysMEMBuffer *buffer = &shown->UsrData.sSystemBuffer;
    if (shown->iBufferStatus != 1) return;
    for (int plane = 0; plane < 3; plane++) {
        int width = buffer->iWidth >> (plane > 0), height = buffer->iHeight >> (plane > 0);
        for (int y = 0; y < height; y++)
            if (fwrite(planes[plane] + (size_t)y * buffer->iStride[plane > 0], 1, (size_t)width, out) != (size_t)width)
                fail("cannot write", "pictures");
    }
}

/* Where the next unit begins: behind a start code of four bytes. */
static size_t next_unit(const unsigned char *bytes, size_t from, size_t end) {
    for (; from + 4 <= end; from++)
        if (!memcmp(bytes + from, "\0\0\0\1", 4)) return from;
    return end;
}

static int decode(const char *from, const char *to) {
    FILE *in = opened(from, "rb"), *out = opened(to, "wb");
    fseek(in, 0, SEEK_END);
    size_t length = (size_t)ftell(in);
    rewind(in);
    unsigned char *bytes = malloc(length + 1);
    if (fread(bytes, 1, length, in) != length) fail("cannot read", from);

    ISVCDecoder *decoder = NULL;
    if (WelsCreateDecoder(&decoder)) fail("no decoder for", from);
    SDecodingParam wanted = {0};
    wanted.sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC;
    wanted.eEcActiveIdc = ERROR_CON_DISABLE;
    if ((*decoder)->Initialize(decoder, &wanted)) fail("no decoder for", from);
    unsigned char *planes[3] = {0};
    for (size_t at = next_unit(bytes, 0, length); at < length;) {
        size_t next = next_unit(bytes, at + 4, length);
        SBufferInfo shown = {0};
        if ((*decoder)->DecodeFrameNoDelay(decoder, bytes + at, (int)(next - at), planes, &shown))
            fail("cannot decode", from);
        show(out, planes, &shown);
        at = next;
    }
    int left = 0;
    (*decoder)->SetOption(decoder, DECODER_OPTION_END_OF_STREAM, &(int){1});
    (*decoder)->GetOption(decoder, DECODER_OPTION_NUM_OF_FRAMES_REMAINING_IN_BUFFER, &left);
    while (left-- > 0) {
        SBufferInfo shown = {0};
        (*decoder)->FlushFrame(decoder, planes, &shown);
        show(out, planes, &shown);
    }
    if (fclose(out)) fail("cannot write", to);
    return 0;
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "--probe")) {
        OpenH264Version version = WelsGetCodecVersion();
        printf("{\"ready\": true, \"peer\": \"openh264\", \"version\": \"%u.%u.%u\"}\n", version.uMajor, version.uMinor,
               version.uRevision);
        return 0;
    }
    if (count == 6 && !strcmp(words[1], "encode")) return encode(words[2], words[3], atoi(words[4]), atoi(words[5]));
    if (count == 4 && !strcmp(words[1], "decode")) return decode(words[2], words[3]);
    fail("usage:", "encode IN.y4m OUT.h264 QP THREADS, or decode IN.h264 OUT.yuv");
}
